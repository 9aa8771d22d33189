/* How long a session surely lives: backends/zookeeper/validity.hpp, with every delay that the network
   may add. README.md beside this file says what it shows and how to run it.

   A client writes through a follower; a leader owns the session's timer. Streams are FIFO and reliable
   until they are cut. client -> follower, leader -> follower and follower -> leader may each stall for
   any time, and follower -> leader may be cut for ever. follower -> client takes no time, the worst case:
   later acknowledgements are believed later.

   One step of the clock is the least time between two pings of the leader. At any moment within each
   step it sends one, so two pings are less than two steps apart: two steps are half a tick, jitter
   included.

   T      the session's time-out in steps
   GAP    steps from one write to the next
   SENT   the gap is counted from the sending of the write before (and not before its acknowledgement),
          else from its acknowledgement
   BACK   from which write belief is counted: 2 is two back
   Claim: whenever the leader has closed the session, the client has ceased to believe in it. */
#ifndef T
#define T 8
#endif
#ifndef GAP
#define GAP 2
#endif
#ifndef BACK
#define BACK 2
#endif
mtype { PING, COMMIT, PONG0, PONG1, WRITE };
chan down = [6] of { mtype };        /* leader -> follower */
chan up = [6] of { mtype };          /* follower -> leader */
byte left = T;                       /* until the leader closes the session */
bit closed, touched, cut;
byte believed = T;                   /* how long the client goes on believing */
bit out, wire;                       /* a write is outstanding; it has not come to the follower yet */
byte age, age1, age2;                /* since the sending of that write, and of the two before it */
byte gap = GAP;
bit pinged = 1;

#if BACK == 2
#define COUNTED age2
#elif BACK == 1
#define COUNTED age1
#else
#define COUNTED age
#endif

active proctype leader() { end: do
  :: atomic { !pinged && nfull(down) -> down!PING; pinged = 1 }
  :: atomic { !cut && up?[PONG0] -> up?PONG0 }
  :: atomic { !cut && up?[PONG1] -> up?PONG1; if :: !closed -> left = T :: else fi }
  :: atomic { !cut && up?[WRITE] && nfull(down) -> up?WRITE; if :: !closed -> down!COMMIT :: else fi }
  :: atomic { !cut -> cut = 1 }
  :: atomic { cut && nempty(up) -> if :: up?PONG0 :: up?PONG1 :: up?WRITE fi }
  od }

active proctype follower() { end: do
  :: atomic { down?[PING] && nfull(up) -> down?PING;
       if :: touched -> up!PONG1 :: else -> up!PONG0 fi; touched = 0 }
  :: atomic { wire && nfull(up) -> wire = 0; touched = 1; up!WRITE }
  :: atomic { down?[COMMIT] -> down?COMMIT; out = 0;           /* the client hears at once */
       if
       :: believed > 0 && T > COUNTED && T - COUNTED > believed -> believed = T - COUNTED
       :: else
       fi;
       age2 = age1; age1 = age; age = 0;
#ifndef SENT
       gap = 0
#endif
     }
  :: atomic { gap >= GAP && !out -> out = 1; wire = 1; age = 0;   /* the client sends */
#ifdef SENT
       gap = 0
#endif
     }
  od }

active proctype clock() { end: do
  :: atomic { pinged ->
       if :: gap < GAP -> gap++ :: else fi;
       if :: left > 0 -> left-- :: else fi;
       if :: left == 0 -> closed = 1 :: else fi;
       if :: believed > 0 -> believed-- :: else fi;
       if :: out && age < T -> age++ :: else fi;
       if :: age1 < T -> age1++ :: else fi;
       if :: age2 < T -> age2++ :: else fi;
       pinged = 0;
       assert(!(closed && believed > 0)) }
  od }
