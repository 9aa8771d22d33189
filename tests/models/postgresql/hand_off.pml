/* How the clients in the line of a name are notified: backends/sql/postgresql, with every delay that the network
   may add. README.md beside this file says what it shows and how to run it.

   Each client has one caller, which acquires the name, releases it, and may come again. A caller that finds the name
   held writes its client into the line, and then only a notification makes it ask again: nobody looks by itself here,
   so that a notification which is missing shows as a caller that waits for ever beside a free name.
   A grant says whether the line is empty. A release whose client knows of a line takes the first client out of it and
   notifies that one in the same statement. Any other release says whether there is a line, and then a second
   statement does it, if the name is still free. A client that is notified and has no caller any more passes it on.
   What a client knows of a line may be wrong both ways, since others come and leave.

   N          clients
   ROUNDS     how often each caller comes
   BLIND      a release whose client knows of no line does not look whether there is one
   EARLY      the first client in line is notified before the name is free
   KEPT       a client whose caller gave up passes on nothing that it was notified of
   UNCHECKED  a release that is late does not compare whose the name is now
   Claims: nobody is granted a name that another client holds, nor loses it to the release of another; no caller waits
   for ever beside a free name. */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
mtype = { IDLE, ASKS, LATE, WAITS, HOLDS, FREES, TELLS, LEAVES, PASSES };
mtype at[N] = IDLE;                       /* what its caller, or a statement of its client, is about */
byte owner;                               /* 1 to N; 0: free */
byte since[N];                            /* its place in line; 0: none */
byte last;                                /* of the places */
byte told[N];                             /* notifications on their way to it */
bit known[N];                             /* its client knows of a line */
byte rounds[N];
byte i, first;

#define LINE (since[0] || since[1] || since[2])

/* The first in line is taken out and notified, and `known` says what the statement saw. */
inline hand_on(me) {
    first = N; i = 0;
    do
    :: i < N ->
       if :: since[i] && (first == N || since[i] < since[first]) -> first = i :: else fi;
       i++
    :: else -> break
    od;
    known[me] = (first < N);
    if :: first < N -> since[first] = 0; told[first]++ :: else fi;
    first = 0; i = 0
}

active [N] proctype client() {
    byte me = _pid;
    end: do
    :: atomic { at[me] == IDLE && rounds[me] < ROUNDS -> rounds[me]++; at[me] = ASKS }
    /* --- the grant, which leaves the line and says whether others are in it */
    :: atomic { at[me] == ASKS && !owner -> owner = me + 1; since[me] = 0; if :: LINE -> known[me] = 1 :: else fi;
         at[me] = HOLDS }
    /* --- held: it stands in line, unless the name is free by then; then it asks again */
    :: atomic { at[me] == ASKS && owner -> at[me] = LATE }
    :: atomic { at[me] == LATE ->
         if :: owner -> if :: !since[me] -> last++; since[me] = last :: else fi; at[me] = WAITS
            :: else -> at[me] = ASKS
         fi }
    /* --- notified */
    :: atomic { told[me] && at[me] == WAITS -> told[me]--; at[me] = ASKS }
    /* --- the caller gives up: its client leaves the line, and passes on what it was notified of */
    :: atomic { at[me] == WAITS -> at[me] = LEAVES }
    :: atomic { at[me] == LEAVES -> since[me] = 0;
#ifndef KEPT
         if :: !owner -> hand_on(me) :: else fi;
#endif
         at[me] = IDLE }
    :: atomic { told[me] && (at[me] == IDLE || at[me] == HOLDS) -> told[me]--;
#ifndef KEPT
         if :: at[me] == IDLE -> at[me] = PASSES :: else fi
#endif
       }
    :: atomic { at[me] == PASSES -> since[me] = 0; if :: !owner -> hand_on(me) :: else fi; at[me] = IDLE }
    /* --- the release, sent now, executed later; the lease may have ended by then */
    :: atomic { at[me] == HOLDS ->
#ifdef EARLY
         hand_on(me);
#endif
         at[me] = FREES }
    :: atomic { at[me] == FREES ->
#ifdef UNCHECKED
         assert(!owner || owner == me + 1);
         owner = 0;
#else
         if
         :: owner != me + 1 -> at[me] = IDLE
         :: else -> owner = 0;
#endif
            if
#ifndef EARLY
            :: known[me] -> hand_on(me); at[me] = IDLE
            :: !known[me] && LINE -> known[me] = 1;
#ifdef BLIND
               at[me] = IDLE
#else
               at[me] = TELLS
#endif
            :: !known[me] && !LINE -> at[me] = IDLE
#else
            :: true -> at[me] = IDLE
#endif
            fi
#ifndef UNCHECKED
         fi
#endif
       }
    :: atomic { at[me] == TELLS -> if :: !owner -> hand_on(me) :: else fi; at[me] = IDLE }
    /* --- what it knew is forgotten */
    :: atomic { at[me] == HOLDS && known[me] -> known[me] = 0 }
    od
}

/* A lease ends before its release is executed: the first in line looks at that moment, as it knows when. */
active proctype clock() { end: do
  :: atomic { owner && at[owner - 1] == FREES -> owner = 0; hand_on(N - 1) }
  :: atomic { !owner && ((at[0] == WAITS && since[0]) || (at[1] == WAITS && since[1]) || (at[2] == WAITS && since[2])) &&
       !told[0] && !told[1] && !told[2] &&
       (at[0] == WAITS || at[0] == IDLE) && (at[1] == WAITS || at[1] == IDLE) && (at[2] == WAITS || at[2] == IDLE) ->
       assert(false) }                    /* nobody is about to do anything */
  od }
