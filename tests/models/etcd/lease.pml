/* How long a lock at etcd surely lives: backends/etcd, with every delay that the network may add.
   README.md beside this file says what it shows and how to run it.

   A renewal asks for a lease and then attaches the key to it. Each request and each answer may take any
   time, arrive after later ones, or never; the client may give up waiting at any moment and begin another
   renewal. The members are one store that executes requests one after the other, which is what etcd
   promises; a lease ends T steps after the store has executed its grant.

   T          the time to live of a lease in steps
   N          leases that are in use at a time
   UNCHECKED  a key is attached without comparing its last revision
   ANSWERED   belief counts from the answer to the request for the lease, and not from its sending
   KEPT       leases are kept alive, which a leader that is none any more may answer
   Claim: when the key is gone, the client has ceased to believe that it holds the lock. */
#ifndef T
#define T 4
#endif
#ifndef N
#define N 2
#endif
mtype = { FREE, ASKED, MADE, KNOWN };     /* a lease, as seen by its client's request */
mtype = { NONE, SENT, DONE, REFUSED };    /* the transaction that attaches the key to it */
mtype lease[N] = FREE;
mtype change[N] = NONE;
byte left[N];                             /* until the store ends it */
byte age[N];                              /* since the moment from which belief counts */
byte compared[N], found[N];               /* revisions: sent with the change, told by its answer */
bit key = 1;                              /* it is there */
byte held_by = N;                         /* the lease to which it is attached; N: the first one */
byte first_left = T;                      /* of that one */
byte revision = 1, known = 1;             /* of the key; as its client knows it */
byte believed = T;                        /* how long the client goes on believing */
byte current = N;                         /* the renewal whose answers it takes; N: none */
bit kept; byte kept_age;                  /* a keep-alive is on its way */
byte i;

inline attach(s) {
    if
#ifdef UNCHECKED
    :: key && left[s] > 0 ->
#else
    :: key && left[s] > 0 && compared[s] == revision ->
#endif
       held_by = s; revision = (revision + 1) % 8; change[s] = DONE
    :: else -> change[s] = REFUSED
    fi;
    found[s] = revision
}

active [N] proctype renewal() {
    byte s = _pid;
    end: do
    :: atomic { believed > 0 && lease[s] == FREE && change[s] == NONE && left[s] == 0 && held_by != s ->
         lease[s] = ASKED; age[s] = 0; current = s }              /* whatever else is under way */
    :: atomic { lease[s] == ASKED -> lease[s] = MADE; left[s] = T }
    :: atomic { lease[s] == MADE && current == s -> lease[s] = KNOWN;
#ifdef ANSWERED
         age[s] = 0;
#endif
         compared[s] = known; change[s] = SENT }
    :: atomic { change[s] == SENT -> attach(s) }
    :: atomic { change[s] == DONE && current == s -> change[s] = NONE; lease[s] = FREE; known = found[s];
         current = N;
         if :: T > age[s] && T - age[s] > believed && believed > 0 -> believed = T - age[s] :: else fi }
    :: atomic { change[s] == REFUSED && current == s -> change[s] = NONE; lease[s] = FREE; known = found[s];
         current = N }
    :: atomic { current != s && (lease[s] == MADE || lease[s] == KNOWN) && change[s] != SENT ->
         change[s] = NONE; lease[s] = FREE }                      /* its answer is heard by nobody */
    od
}

active proctype clock() { end: do
  :: atomic {
       if :: first_left > 0 -> first_left-- :: else fi;
       if :: held_by == N && first_left == 0 -> key = 0 :: else fi;
       i = 0;
       do
       :: i < N ->
          if :: left[i] > 0 -> left[i]--;
                if :: left[i] == 0 && held_by == i -> key = 0 :: else fi
             :: else fi;
          if :: age[i] < T -> age[i]++ :: else fi;
          i++
       :: else -> break
       od;
       if :: believed > 0 -> believed-- :: else fi;
       if :: kept_age < T -> kept_age++ :: else fi;
       assert(!(!key && believed > 0)) }
#ifdef KEPT
  :: atomic { !kept && believed > 0 -> kept = 1; kept_age = 0 }
  :: atomic { kept -> kept = 0;                                   /* a former leader answers */
       if :: T > kept_age && T - kept_age > believed && believed > 0 -> believed = T - kept_age :: else fi }
#endif
  od }
