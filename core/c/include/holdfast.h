/* The C interface of Holdfast. docs/c.md is its guide.
 *
 * Functions that can fail return 0, or a code of hf_code, and then write the same code with its
 * words to *error, unless that is null. Nothing throws and nothing calls back. Texts are UTF-8 and
 * end in NUL; each is copied before the call returns. Times are in milliseconds.
 *
 * Each struct begins with its own size, so that a later version may append fields. HF_LOCK_OPTIONS
 * and its like set the size and the defaults; null in place of options means the defaults.
 *
 * Threads: every function may be called by any thread. One thread at a time may change a lease
 * (renew, downgrade, release, start) while others read it. A handle that is freed must not be in
 * use by another thread.
 *
 * fork: in the child the handles of the parent answer HF_FORKED; free them or leave them. */
#ifndef HOLDFAST_H
#define HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HF_API __attribute__((visibility("default")))
#else
#define HF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Connections to one backend. Locks and leases keep it alive, and after hf_close answer HF_CLOSED.
 */
typedef struct hf_client hf_client;
/* A name, or several names for one acquisition, or a candidate of an election. Holds nothing. */
typedef struct hf_lock hf_lock;
/* One acquisition. */
typedef struct hf_lease hf_lease;
/* Where calls that do not block leave their answers. */
typedef struct hf_queue hf_queue;

/* The conditions of holdfast::errc, which has their meanings. */
typedef enum hf_code {
    HF_OK = 0,
    HF_CONTENDED = 1,
    HF_TIMED_OUT = 2,
    HF_CANCELLED = 3,
    HF_UNAVAILABLE = 4,
    HF_NO_QUORUM = 5,
    HF_IN_DOUBT = 6,
    HF_LOST = 7,
    HF_REVOKED = 8,
    HF_NOT_HELD = 9,
    HF_DENIED = 10,
    HF_NOT_SUPPORTED = 11,
    HF_KIND_MISMATCH = 12,
    HF_BAD_NAME = 13,
    HF_BAD_CONFIG = 14,
    HF_WOULD_DEADLOCK = 15,
    HF_CLOSED = 16,
    HF_FORKED = 17,
    HF_EXHAUSTED = 100, /* no memory, threads or descriptors */
    HF_INTERNAL = 101   /* none of the above; the message says what */
} hf_code;

typedef struct hf_error {
    uint32_t size;
    int32_t code;   /* hf_code */
    int32_t native; /* the server's or the library's own number, for a log */
    char message[1024];
} hf_error;
#define HF_ERROR \
    { sizeof(hf_error), 0, 0, "" }

/* -- clients ----------------------------------------------------------------------------------- */

typedef struct hf_client_options {
    uint32_t size;
    const char* config_file; /* null: HOLDFAST_CONFIG, or where holdfast.toml is looked for */
    int64_t close_grace;     /* how long hf_close waits for releases under way: at most a day */
    hf_queue* reports;       /* gets what hf_queue_report takes; null: nothing is reported */
} hf_client_options;
#define HF_CLIENT_OPTIONS \
    { sizeof(hf_client_options), NULL, 1000, NULL }

/* `what`: a URL, a name in holdfast.toml, or null for HOLDFAST_URL or that file's default. Connects
 * on first use. */
HF_API int hf_open(const char* what, const hf_client_options*, hf_client** client, hf_error* error);
/* Ends every wait with HF_CLOSED, and loses and releases every lease, as abandoned. Blocks for
 * close_grace and about a second at most. The client stays, and answers HF_CLOSED. */
HF_API void hf_close(hf_client*);
/* Closes it first. No other thread may use the client any more. Null is allowed. */
HF_API void hf_client_free(hf_client*);

/* -- locks ------------------------------------------------------------------------------------- */

enum { HF_MUTEX = 0, HF_SHARED_MUTEX = 1, HF_SEMAPHORE = 2, HF_ELECTION = 3 };
#define HF_FOREVER INT64_MAX

typedef struct hf_lock_options {
    uint32_t size;
    int32_t kind;       /* HF_MUTEX, ... */
    uint32_t limit;     /* permits of a semaphore */
    int32_t no_renewal; /* 1: the lease is lost at its ttl */
    int64_t ttl;        /* 0: that of the configuration, else 10 s */
    int64_t max_hold;   /* lost so long after the grant; 0: no limit */
    int64_t lock_delay; /* how long the name stays closed after a lease without release */
    int64_t min_hold;   /* how long the name stays closed from a grant on */
} hf_lock_options;
#define HF_LOCK_OPTIONS \
    { sizeof(hf_lock_options), HF_MUTEX, 1, 0, 0, 0, 0, 0 }

/* Sends nothing. A candidate of an election (HF_ELECTION) campaigns by hf_acquire, whose note is
 * the value that others see. */
HF_API int hf_lock_new(hf_client*, const char* name, const hf_lock_options*, hf_lock** lock,
                       hf_error* error);

typedef struct hf_part {
    uint32_t size;
    int32_t shared;   /* 1: beside other readers */
    uint32_t permits; /* of a semaphore */
    const hf_lock* lock;
} hf_part;
#define HF_PART \
    { sizeof(hf_part), 0, 1, NULL }

/* Several locks, of any clients, that hf_acquire acquires all or none, in an order that is the same
 * for all callers. The parts' locks may be freed at once. */
HF_API int hf_lock_all(const hf_part* parts, size_t count, hf_lock** lock, hf_error* error);
/* Leases stay. Null is allowed. */
HF_API void hf_lock_free(hf_lock*);

typedef struct hf_acquire_options {
    uint32_t size;
    int32_t shared;   /* 1: beside other readers */
    uint32_t permits; /* of a semaphore */
    int64_t wait;     /* of the whole call; 0: one attempt */
    const char* note; /* that inspect shows, of at most 128 bytes, or null */
} hf_acquire_options;
#define HF_ACQUIRE_OPTIONS \
    { sizeof(hf_acquire_options), 0, 1, HF_FOREVER, NULL }

/* Waits for the lock; with `wait` 0 for at most the request time-out. Free the lease with
 * hf_lease_free. */
HF_API int hf_acquire(const hf_lock*, const hf_acquire_options*, hf_lease** lease, hf_error* error);

/* -- calls that do not block ------------------------------------------------------------------- */

HF_API int hf_queue_new(hf_queue**, hf_error* error);
/* Cancels the calls whose answers have not been taken, and releases what they acquired. Null is
 * allowed. */
HF_API void hf_queue_free(hf_queue*);
/* Readable while an answer or a report waits, for poll and its like. Do not read from it. -1 in a
 * forked child. */
HF_API int hf_queue_fd(const hf_queue*);

/* *call: a number that no other call of the queue has. The lock may be freed at once. */
HF_API int hf_acquire_start(const hf_lock*, const hf_acquire_options*, hf_queue*, uint64_t* call,
                            hf_error* error);
/* Ends an acquisition, a watch or a wait for a leader with HF_CANCELLED. What an acquisition has
 * been granted, and nobody has taken, is released; of the others an answer that came first stays.
 * The answer is in the queue in either case, soon. Without effect on other calls. */
HF_API void hf_cancel(hf_queue*, uint64_t call);

typedef struct hf_event {
    uint32_t size;
    uint64_t call;
    hf_lease* lease; /* of an acquisition that was granted; else null */
    hf_error error;  /* code 0: the call succeeded */
    char* json;      /* of a question that was answered: free it with hf_string_free; else null */
} hf_event;
#define HF_EVENT \
    { sizeof(hf_event), 0, NULL, HF_ERROR, NULL }

/* Takes an answer and returns 1, or 0 when there is none. Does not block. */
HF_API int hf_queue_next(hf_queue*, hf_event*);

/* -- reports ----------------------------------------------------------------------------------- */

/* What a client reports for an operator's log, to the queue that it was opened with. A later
 * version may add kinds. */
enum {
    HF_REPORT_WAITING = 1,     /* the lock is busy: the acquisition waits */
    HF_REPORT_ACQUIRED = 2,    /* `token`, and `took`: how long the call lasted */
    HF_REPORT_AT_RISK = 3,     /* a renewal failed (`reason`); the lease is valid for `left` */
    HF_REPORT_RECOVERED = 4,   /* a renewal was answered after that */
    HF_REPORT_LOST = 5,        /* `reason` says why */
    HF_REPORT_IN_DOUBT = 6,    /* a request was not answered; Holdfast finds out */
    HF_REPORT_RELEASED = 7,    /* the server answered the release */
    HF_REPORT_WARNING = 8,     /* `text` only: about the deployment, or about dropped reports */
    HF_REPORT_UNREACHABLE = 9, /* no answer for a request time-out; the call waits on */
    HF_REPORT_REACHABLE = 10,  /* an answer after that */
    HF_REPORT_MOVED = 11       /* other servers serve now: `text` says which, and which before */
};

typedef struct hf_report {
    uint32_t size;
    int32_t kind;   /* HF_REPORT_WAITING, ... */
    int32_t reason; /* hf_code of a loss, a risk or a doubt; else 0 */
    int32_t native; /* the server's or the library's own number of the reason */
    uint64_t token; /* the fencing token; 0: none */
    int64_t took;
    int64_t left;
    uint64_t dropped; /* how many reports before this one were dropped */
    char name[513];   /* of the lock; empty: about the client */
    char owner[513];  /* of the acquisition */
    char text[1024];  /* of a warning, or why, in words */
} hf_report;
#define HF_REPORT \
    { sizeof(hf_report), 0, 0, 0, 0, 0, 0, 0, "", "", "" }

/* Takes a report and returns 1, or 0 when there is none. Does not block. A queue keeps 4096 of
 * them: beyond that the oldest one that is no loss is dropped. It may be freed before the client.
 */
HF_API int hf_queue_report(hf_queue*, hf_report*);

/* -- leases ------------------------------------------------------------------------------------ */

/* 1 while it is held and valid. Reads the clock, and asks no server. */
HF_API int hf_lease_valid(const hf_lease*);

enum { HF_STATE_HELD = 1, HF_STATE_AT_RISK = 2, HF_STATE_LOST = 3, HF_STATE_RELEASED = 4 };
enum {
    HF_PREVIOUS_UNKNOWN = 0,
    HF_PREVIOUS_NONE = 1,
    HF_PREVIOUS_RELEASED = 2,
    HF_PREVIOUS_ABANDONED = 3,
    HF_PREVIOUS_CRASHED = 4
};

typedef struct hf_facts {
    uint32_t size;
    int32_t state;    /* HF_STATE_HELD, ... */
    int32_t previous; /* how the previous holder ended: HF_PREVIOUS_NONE, ... */
    int32_t reason;   /* why it was lost: HF_LOST, HF_REVOKED, HF_CLOSED, ...; else 0 */
    int32_t shared;
    uint32_t permits;
    int32_t asked;  /* 1: another client asked for its release */
    int64_t left;   /* how long no other client can hold it, as known now */
    uint64_t token; /* the fencing token; 0: none */
    char owner[513];
} hf_facts;
#define HF_FACTS \
    { sizeof(hf_facts), 0, 0, 0, 0, 0, 0, 0, 0, "" }

/* Of this part, from 0, of hf_lock_all's; 0 of any other lease. Asks no server. */
HF_API int hf_lease_look(const hf_lease*, size_t part, hf_facts*, hf_error* error);
/* Renews now. Not for the leases of hf_lock_all. */
HF_API int hf_lease_renew(hf_lease*, hf_error* error);
/* Turns exclusive into shared without another holder in between. Not for the leases of hf_lock_all.
 */
HF_API int hf_lease_downgrade(hf_lease*, hf_error* error);
/* `abandoned` 1: the work was not finished, which the next holder reads. HF_LOST, HF_REVOKED, ...:
 * the lease was lost before, and the work may have collided. HF_UNAVAILABLE: Holdfast repeats the
 * release until it is answered or the server frees the lock by itself. */
HF_API int hf_lease_release(hf_lease*, int abandoned, hf_error* error);

/* HF_WATCH is answered with the reason when the lease is lost, and with HF_NOT_HELD when it is
 * released; the others as the functions above. */
enum { HF_RENEW = 1, HF_DOWNGRADE = 2, HF_RELEASE = 3, HF_ABANDON = 4, HF_WATCH = 5 };
HF_API int hf_lease_start(hf_lease*, int what, hf_queue*, uint64_t* call, hf_error* error);
/* A lease that is still held is released in the background, as abandoned. Null is allowed. */
HF_API void hf_lease_free(hf_lease*);

/* -- operators' questions ---------------------------------------------------------------------- */

enum {
    HF_INSPECT = 1, /* holders and waiters of `name` */
    HF_LIST = 2,    /* names that are held and begin with `name`, a line each, `limit` at most */
    HF_BREAK = 3,   /* ends leases of `name`: all, or that of `owner` or `token`; a line each */
    HF_ASK = 4,     /* asks the same holders to release */
    HF_EXAMINE = 5, /* what makes the deployment unsafe or slow */
    HF_LEADER = 6   /* of the election `name`; with `wait`: once it is another than `owner` */
};

typedef struct hf_question {
    uint32_t size;
    int32_t what;      /* HF_INSPECT, ... */
    const char* name;  /* null: "" */
    const char* owner; /* an owner id, or null */
    uint64_t token;    /* 0: any */
    uint64_t limit;
    int64_t wait;
    const char* note; /* of HF_BREAK: by whom and why */
    int32_t now;      /* of HF_BREAK: 1: free at once; two holders are possible */
} hf_question;
#define HF_QUESTION \
    { sizeof(hf_question), 0, NULL, NULL, 0, 10000, 0, NULL, 0 }

/* *json: what the command writes with --json (docs/json.md), without the last line's end; free it
 * with hf_string_free. Blocks for at most the request time-out, and `wait`. */
HF_API int hf_ask(hf_client*, const hf_question*, char** json, hf_error* error);
/* The same without blocking. hf_cancel ends HF_LEADER with `wait`; the others end by themselves. */
HF_API int hf_ask_start(hf_client*, const hf_question*, hf_queue*, uint64_t* call, hf_error* error);
HF_API void hf_string_free(char*);

#ifdef __cplusplus
}
#endif
#endif
