/* A name's row at MariaDB or MySQL: backends/sql/mysql, with every delay that the network, a row's lock and a
   commit may add. README.md beside this file says what it shows and how to run it.

   An owner asks once, or the first one twice: the engine repeats what is not answered. A request is one statement
   that takes a free row, or a read and, later, a write of what the row has to say, with the version that was read.
   An owner that gives up withdraws; one that holds releases, and withdraws if a request is still unanswered.
   A statement has the row's lock from the time when it is evaluated until it commits. A read locks nothing, and
   sees what is committed. A message may take any time, and one that is lost takes for ever; what is rolled back
   might as well have been lost.

   T           the time to live of a lease in steps
   D           after so many steps a request has to be evaluated
   N           owners
   TWICE       1: the first owner may ask twice
   UNCHECKED   what the row has to say is written without comparing the version
   FORGOTTEN   the statement that takes a free row does not look for owners that have left
   LATE        nor does it, or a write, look at its deadline
   UNMARKED    a withdrawal writes nothing where the owner holds nothing
   UNLOCKED    nor does it wait for a statement that has the row
   RELEASED    a release is the end, also with a request unanswered
   ANSWERED    belief counts from the answer, and not from the sending
   Claims: never do two owners believe that they hold the name; an owner that has left is granted nothing. */
#ifndef T
#define T 2
#endif
#ifndef D
#define D 2
#endif
#ifndef N
#define N 2
#endif
#ifndef TWICE
#define TWICE 1
#endif
#define C (N + TWICE)
#define OF(s) (s < N -> s : 0)
mtype = { NONE, SENT, WRITE, COMMITS, DONE };                /* of a request */
mtype = { ASKS, HOLDS, RELEASES, WITHDRAWS, LEFT };          /* of an owner */
byte holder;                 /* of the row, committed: 1 to N; 0: nobody */
byte left;                   /* until its time has run out */
bit gone[N];                 /* the row names it as one that has left */
bit locked;                  /* a statement has been evaluated, and has not committed */
mtype at[C] = NONE;          /* the requests */
bit fresh[C], asked[C], whole[C];
byte ends[C];                /* what is left of the lease that the statement writes */
byte age[C];                 /* since it was sent */
mtype does[N] = ASKS;
bit commits[N];              /* its release or withdrawal has the row */
byte deadline[N] = D;
bit began[N];
byte believed[N];
byte n;

#define OPEN(s) (at[s] != NONE)
inline written() { n = 0; do :: n < C -> fresh[n] = 0; n++ :: else -> break od; n = 0 }
#ifdef LATE
#define IN_TIME true
#else
#define IN_TIME (deadline[me] > 0)
#endif
#ifdef FORGOTTEN
#define STAYS true
#else
#define STAYS (!gone[me])
#endif
#ifdef UNCHECKED
#define SAME true
#else
#define SAME fresh[s]
#endif

active [C] proctype request() {
    byte s = _pid, me = OF(_pid);
    end: do
    /* --- sent; a repetition later than the first, and all before the deadline */
    :: atomic { does[me] == ASKS && at[s] == NONE && !asked[s] && (!began[me] || deadline[me] > 0) ->
         at[s] = SENT; asked[s] = 1; began[me] = 1; age[s] = 0;
         if :: whole[s] = 0 :: whole[s] = 1 fi }
    /* --- one statement takes a free row */
    :: atomic { at[s] == SENT && !whole[s] && !locked ->
         if :: (holder == 0 || (left == 0 && holder != me + 1)) && STAYS && IN_TIME ->
                 locked = 1; ends[s] = T; at[s] = COMMITS
            :: else -> at[s] = NONE
         fi }
    /* --- or the row is read, without a lock; an owner that has stopped asking sends nothing more */
    :: atomic { at[s] == SENT && whole[s] ->
         if :: does[me] == ASKS && (holder == 0 || left == 0 || holder == me + 1) ->
                 fresh[s] = 1; ends[s] = T; at[s] = WRITE
            :: else -> at[s] = NONE
         fi; whole[s] = 0 }
    /* --- and written, if it is the same */
    :: atomic { at[s] == WRITE && !locked ->
         if :: SAME && IN_TIME -> locked = 1; at[s] = COMMITS
            :: else -> at[s] = NONE; ends[s] = 0
         fi; fresh[s] = 0 }
    :: atomic { at[s] == COMMITS -> locked = 0;
         assert(does[me] != LEFT); holder = me + 1; left = ends[s]; written(); at[s] = DONE; ends[s] = 0 }
    /* --- its answer arrives */
    :: atomic { at[s] == DONE -> at[s] = NONE;
         if :: does[me] == ASKS ->
#ifdef ANSWERED
                 age[s] = 0;
#endif
                 if :: age[s] < T -> does[me] = HOLDS; believed[me] = T - age[s]
                    :: else -> does[me] = WITHDRAWS
                 fi
            :: else
         fi; age[s] = 0 }
    od
}

#define UNANSWERED (OPEN(me) || (me == 0 && OPEN(C - 1)))

inline answered() {
#ifndef RELEASED
    if :: UNANSWERED -> does[me] = WITHDRAWS :: else -> does[me] = LEFT fi
#else
    does[me] = LEFT
#endif
}
inline withdraw() {
    gone[me] = (deadline[me] > 0);
    if :: holder == me + 1 -> holder = 0; left = 0; written()
#ifdef UNMARKED
       :: else
#else
       :: else -> written()
#endif
    fi; does[me] = LEFT
}

active [N] proctype owner() {
    byte me = _pid - C;
    end: do
    :: atomic { does[me] == ASKS && began[me] -> does[me] = WITHDRAWS }
    /* --- belief ends first, by itself or by the release */
    :: atomic { does[me] == HOLDS -> believed[me] = 0; does[me] = RELEASES }
    /* --- the release of what the row says it holds */
    :: atomic { does[me] == RELEASES && !commits[me] && !locked ->
         if :: holder == me + 1 && left > 0 -> locked = 1; commits[me] = 1 :: else -> answered() fi }
    :: atomic { does[me] == RELEASES && commits[me] ->
         locked = 0; commits[me] = 0; holder = 0; left = 0; written(); answered() }
    /* --- the withdrawal, which is written in any case */
#ifdef UNLOCKED
    :: atomic { does[me] == WITHDRAWS -> withdraw() }
#else
    :: atomic { does[me] == WITHDRAWS && !commits[me] && !locked -> locked = 1; commits[me] = 1 }
    :: atomic { does[me] == WITHDRAWS && commits[me] -> locked = 0; commits[me] = 0; withdraw() }
#endif
    /* --- what is past is forgotten */
    :: atomic { gone[me] && deadline[me] == 0 -> gone[me] = 0 }
    od
}

inline down(what) { if :: what > 0 -> what-- :: else fi }
active proctype clock() { byte k; end: do
  :: atomic {
       down(left);
       k = 0;
       do
       :: k < C ->
          down(ends[k]);
          if :: at[k] != NONE && does[OF(k)] == ASKS && age[k] < T -> age[k]++ :: else fi;
          k++
       :: else -> break
       od;
       k = 0;
       do
       :: k < N ->
          if :: began[k] -> down(deadline[k]) :: else fi;
          down(believed[k]);
          if :: does[k] == HOLDS && believed[k] == 0 -> does[k] = RELEASES :: else fi;
          k++
       :: else -> break
       od; k = 0 }
  :: atomic { believed[0] > 0 && believed[1] > 0 -> assert(false) }
#if N > 2
  :: atomic { believed[2] > 0 && (believed[0] > 0 || believed[1] > 0) -> assert(false) }
#endif
  od }
