/* A name's row at a primary, and at a standby that is promoted: backends/sql/postgresql with several hosts, with
   every delay that the network may add. README.md beside this file says what it shows and how to run it.

   Server 0 is the primary, server 1 the standby, whose row is a copy of some moment. It is promoted at any moment, and
   gets no changes from then on; the old primary lives on and takes writes. A statement goes to the server that its
   client is connected to; it and its answer may take any time or get lost. A client that has connected to the new
   primary uses no connection to the old one any more.

   T          the time to live of a lease in steps
   SYNC       a grant or a renewal is answered by the primary only when the standby has it
   LAGGING    with SYNC: another standby has it than the one that is promoted
   COMPANION  with SYNC: the old primary keeps a standby of its own, which goes on acknowledging
   BACK       a client goes back to an older timeline than it has seen
   Claims. With SYNC: no two clients ever believe that they hold the lock. Without: no two believe it once T steps have
   passed since the last client connected to the new primary. */
#ifndef T
#define T 2
#endif
#define N 2
#ifdef SYNC
#define JUDGED true
#else
#define JUDGED (calm > T)
#endif
mtype = { IDLE, GRANT, RENEW, DONE };
byte owner[2], left[2];                   /* of the row at each server: 1 to N; 0: nobody */
bit promoted;
bit seen[N];                              /* the server with the latest timeline that it has connected to */
mtype at[N] = IDLE;                       /* its statement */
bit to[N], waits[N];                      /* where that goes; and whether it waits for the answer */
bit have[N];                              /* the statement's write is where its answer needs it */
byte age[N], believed[N], calm;

inline connect() {
#ifdef BACK
    if :: to[me] = 0 :: promoted -> to[me] = 1 fi;
#else
    if :: !seen[me] -> to[me] = 0 :: promoted -> to[me] = 1 fi;
#endif
    if :: to[me] -> seen[me] = 1 :: else fi;
    waits[me] = 1; age[me] = 0 }
inline write() {
    owner[to[me]] = me + 1; left[to[me]] = T; at[me] = DONE;
#ifdef SYNC
    have[me] = to[me]
#else
    have[me] = 1
#endif
    }

active [N] proctype client() {
    byte me = _pid;
    end: do
    :: atomic { at[me] == IDLE && believed[me] == 0 -> connect(); at[me] = GRANT }
    :: atomic { at[me] == IDLE && believed[me] > 0 -> connect(); at[me] = RENEW }
    :: atomic { at[me] == GRANT ->
         if :: owner[to[me]] == 0 || owner[to[me]] == me + 1 -> write()
            :: else -> at[me] = IDLE; waits[me] = 0
         fi }
    :: atomic { at[me] == RENEW ->
         if :: owner[to[me]] == me + 1 -> write()
            :: else -> at[me] = IDLE;        /* it is lost */
                 if :: waits[me] -> believed[me] = 0 :: else fi; waits[me] = 0
         fi }
    :: atomic { at[me] == DONE && waits[me] && have[me] -> at[me] = IDLE; waits[me] = 0;
         believed[me] = T - age[me] }
    /* --- released, which the server may never hear */
    :: atomic { believed[me] > 0 && at[me] == IDLE -> believed[me] = 0;
         if :: owner[seen[me]] == me + 1 -> owner[seen[me]] = 0; left[seen[me]] = 0 :: true fi }
    /* --- no answer in time; the statement may be executed later, or never */
    :: atomic { waits[me] -> waits[me] = 0 }
    :: atomic { at[me] != IDLE && !waits[me] -> at[me] = IDLE }
    od
}

active proctype standby() { byte k; end: do
  :: atomic { !promoted ->
#ifndef LAGGING
       owner[1] = owner[0]; left[1] = left[0];
#endif
       have[0] = 1; have[1] = 1 }
#ifdef LAGGING
  :: atomic { !promoted -> owner[1] = owner[0]; left[1] = left[0] }
#endif
#ifdef COMPANION
  :: atomic { promoted -> have[0] = 1; have[1] = 1 }
#endif
  :: atomic { !promoted -> promoted = 1 }
  od }

active proctype clock() { byte k; end: do
  :: atomic {
       k = 0;
       do
       :: k < 2 ->
          if :: left[k] > 0 -> left[k]--; if :: left[k] == 0 -> owner[k] = 0 :: else fi :: else fi;
          if :: age[k] < T -> age[k]++ :: else fi;
          if :: believed[k] > 0 -> believed[k]-- :: else fi;
          k++
       :: else -> break
       od; k = 0;
       if :: seen[0] && seen[1] && calm <= T -> calm++ :: else fi }
  :: atomic { believed[0] > 0 && believed[1] > 0 && JUDGED -> assert(false) }
  od }
