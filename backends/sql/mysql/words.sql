--- What {words} in statements.sql and session.sql stand for. {comment} is the table's comment.

--- The server's clock in us, when it is evaluated: NOW() is the moment when the statement began, which may have waited.
-- name: now
CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED)

--- In us.
-- name: day
86400000000
