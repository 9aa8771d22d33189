/* A name's row at PostgreSQL: backends/sql/postgresql, with every delay that the network may add.
   README.md beside this file says what it shows and how to run it.

   Who wants it for itself sends one statement, which locks the row and judges its columns as they are then.
   Who wants it beside others sends such a statement as well, which takes a free row; or it reads the row, and
   later sends what the row has to say, with the version that was read; the statement locks the row and compares.
   Statements and answers may take any time or get lost; a client may stop waiting at any moment and take back
   what it asked for, and a lease ends T steps after the server has written it.

   T          the time to live of a lease in steps
   N          clients
   UNCHECKED  what the row has to say is written without comparing the version
   SNAPSHOT   readers stand in another table, which the statement of an exclusive grant reads as it was when
              the statement began, and not when it got the row's lock
   ANSWERED   belief counts from the answer, and not from the sending
   UNMARKED   to take back what was asked for does not change the version
   FORGOTTEN  nor does it stop the statement that takes a free row beside others
   Claims: nobody believes that it holds the lock beside an exclusive holder; what was taken back takes
   nothing later. */
#ifndef T
#define T 2
#endif
#ifndef N
#define N 3
#endif
#define free (!owner)
mtype = { IDLE, ASKED, BEGUN, READ, CHANGE, DONE };
byte owner;                               /* of the columns: 1 to N; 0: nobody */
byte left;                                /* until its time has run out */
byte reads[N];                            /* the same for each reader in the row's text */
bit fresh[N];                             /* the row has the version that was read */
bit gone[N];                              /* it was marked as one that has left */
mtype at[N] = IDLE;                       /* its statement */
bit alone[N], waits[N];                   /* wants it for itself; and waits for the answer */
bit saw[N];                               /* what the statement found when it began: readers */
byte age[N], believed[N];
bit exclusive[N];
byte i;

inline written() { i = 0; do :: i < N -> fresh[i] = 0; i++ :: else -> break od }
#define READERS (reads[0] > 0 || reads[1] > 0 || reads[2] > 0)
#define OTHERS ((me != 0 && reads[0] > 0) || (me != 1 && reads[1] > 0) || (me != 2 && reads[2] > 0))

active [N] proctype client() {
    byte me = _pid;
    end: do
    /* --- for itself: one statement */
    :: atomic { at[me] == IDLE && !waits[me] && believed[me] == 0 && owner != me + 1 && reads[me] == 0 ->
         at[me] = ASKED; alone[me] = 1; waits[me] = 1; age[me] = 0 }
    :: atomic { at[me] == ASKED && alone[me] -> saw[me] = READERS; at[me] = BEGUN }
    :: atomic { at[me] == BEGUN ->
#ifdef SNAPSHOT
         if :: free && !saw[me] && !gone[me] ->
#else
         if :: free && !READERS && !gone[me] ->
#endif
               assert(waits[me]); owner = me + 1; left = T; written(); at[me] = DONE
            :: else -> at[me] = IDLE; waits[me] = 0; gone[me] = 0
         fi }
    /* --- beside others: a free row is taken by one statement */
    :: atomic { at[me] == IDLE && !waits[me] && believed[me] == 0 && owner != me + 1 && reads[me] == 0 ->
         at[me] = ASKED; alone[me] = 0; waits[me] = 1; age[me] = 0 }
    :: atomic { at[me] == ASKED && !alone[me] && free && !READERS ->
         if :: !gone[me] -> assert(waits[me]); reads[me] = T; written(); at[me] = DONE
            :: else -> at[me] = IDLE; waits[me] = 0; gone[me] = 0
         fi }
    /* --- or it is read, and written with the version that was read */
    :: atomic { at[me] == ASKED && !alone[me] && waits[me] ->      /* else it sends nothing more */
         if :: free -> fresh[me] = 1; at[me] = READ :: else -> at[me] = IDLE; waits[me] = 0 fi }
    :: atomic { at[me] == READ ->
#ifdef UNCHECKED
         if :: true ->
#else
         if :: fresh[me] ->
#endif
               assert(waits[me]); reads[me] = T; written(); at[me] = DONE
            :: else -> at[me] = IDLE; waits[me] = 0
         fi }
    /* --- its answer arrives */
    :: atomic { at[me] == DONE && waits[me] -> at[me] = IDLE; waits[me] = 0; exclusive[me] = alone[me];
#ifdef ANSWERED
         age[me] = 0;
#endif
         believed[me] = T - age[me] }
    /* --- from exclusive to shared: belief first, then the row */
    :: atomic { believed[me] > 0 && exclusive[me] && at[me] == IDLE -> exclusive[me] = 0 }
    :: atomic { believed[me] > 0 && !exclusive[me] && owner == me + 1 && at[me] == IDLE && reads[me] == 0 ->
         reads[me] = left; owner = 0; left = 0; written() }
    /* --- released */
    :: atomic { believed[me] > 0 && at[me] == IDLE -> believed[me] = 0;
         if :: owner == me + 1 -> owner = 0; left = 0 :: else -> reads[me] = 0 fi;
         written() }
    /* --- nobody waits for it any more: what is held is given back, what may still come is stopped */
    :: atomic { waits[me] && at[me] != IDLE -> waits[me] = 0;
         if :: owner == me + 1 -> owner = 0; left = 0 :: else fi;
         reads[me] = 0;
#ifndef UNMARKED
         written();
#endif
         if :: at[me] == DONE -> at[me] = IDLE
            :: alone[me] && at[me] != DONE -> gone[me] = 1
#ifndef FORGOTTEN
            :: !alone[me] && at[me] == ASKED -> gone[me] = 1
#endif
            :: else
         fi }
    /* --- lost on its way */
    :: atomic { at[me] == ASKED && !waits[me] -> at[me] = IDLE; gone[me] = 0 }
    od
}

active proctype clock() { byte k; end: do
  :: atomic {
       if :: left > 0 -> left--; if :: left == 0 -> owner = 0 :: else fi :: else fi;
       k = 0;
       do
       :: k < N ->
          if :: reads[k] > 0 -> reads[k]-- :: else fi;
          if :: age[k] < T -> age[k]++ :: else fi;
          if :: believed[k] > 0 -> believed[k]-- :: else fi;
          k++
       :: else -> break
       od; k = 0 }
  :: atomic {
       (believed[0] > 0 && exclusive[0] && (believed[1] > 0 || believed[2] > 0)) ||
       (believed[1] > 0 && exclusive[1] && (believed[0] > 0 || believed[2] > 0)) ||
       (believed[2] > 0 && exclusive[2] && (believed[0] > 0 || believed[1] > 0)) -> assert(false) }
  od }
