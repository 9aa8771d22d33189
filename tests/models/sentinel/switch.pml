/* How long a client at a former primary goes on believing: backends/redis/sentinel, with every delay that
   the network may add. README.md beside this file says what it shows and how to run it.

   The replica is promoted without the client's key, and another client acquires the lock there at once. The
   former primary goes on answering our client for ever, as in a split network. Of three Sentinels two learn
   of the promotion within LEARN steps; the third may never learn. A request to any server and its answer may
   each take any time, or be lost.

   T         the time to live of a lease in steps
   LEARN     until a majority of the Sentinels knows of a promotion
   ALONE     renewals count without the Sentinels
   ONE       one Sentinel is enough to confirm
   ANSWERED  a confirmation counts from its answer, and not from its question
   RECENT    a renewal counts in full if there is any confirmation within T
   Claim: T + LEARN steps after the promotion the client has ceased to believe that it holds the lock. */
#ifndef T
#define T 3
#endif
#ifndef LEARN
#define LEARN 1
#endif
#define NEVER T                           /* an age from which nothing is believed */
mtype = { IDLE, ASKED, OLD, NEW };        /* a question to a Sentinel; with its answer */
mtype = { NONE, SENT, DONE };             /* a renewal at the former primary */
mtype question[3] = IDLE;
bit knows[3];
byte asked[3];                            /* age of the question under way */
byte confirmed[3] = NEVER;                /* age of the last question that was answered with the old address */
mtype renewal = NONE;
byte sent;                                /* age of the renewal under way */
byte believed = T;                        /* how long the client goes on believing */
bit promoted;
byte since;                               /* the promotion */
byte low, mid, base, i;

#define sorted2(a, b) if :: a < b -> low = a; mid = b :: else -> low = b; mid = a fi

/* The age of what a majority confirms: the second youngest of three. */
inline majority() {
    sorted2(confirmed[0], confirmed[1]);
    if
    :: confirmed[2] < low -> mid = low; low = confirmed[2]
    :: confirmed[2] >= low && confirmed[2] < mid -> mid = confirmed[2]
    :: else
    fi
}

active [3] proctype sentinel() {
    byte s = _pid;
    end: do
    :: atomic { question[s] == IDLE -> question[s] = ASKED; asked[s] = 0 }
    :: atomic { question[s] == ASKED -> if :: knows[s] -> question[s] = NEW :: else -> question[s] = OLD fi }
    :: atomic { question[s] == OLD ->
#ifdef ANSWERED
         confirmed[s] = 0;
#else
         confirmed[s] = asked[s];
#endif
         question[s] = IDLE; asked[s] = 0 }
    :: atomic { question[s] == NEW -> confirmed[s] = NEVER; question[s] = IDLE; asked[s] = 0 }
    :: atomic { question[s] != IDLE -> question[s] = IDLE; asked[s] = 0 }
    :: atomic { promoted && !knows[s] && s != 2 -> knows[s] = 1 }
    od
}

active proctype client() { end: do
    :: atomic { renewal == NONE && believed > 0 -> renewal = SENT; sent = 0 }
    :: atomic { renewal == SENT -> renewal = DONE }
    :: atomic { renewal == DONE ->
         majority();
#ifdef ONE
         mid = low;
#endif
         base = sent;
#ifdef RECENT
         if :: mid >= NEVER -> base = NEVER :: else fi;
#else
#ifndef ALONE
         if :: mid > base -> base = mid :: else fi;
#endif
#endif
         if :: T > base && T - base > believed && believed > 0 -> believed = T - base :: else fi;
         renewal = NONE; sent = 0; low = 0; mid = 0; base = 0 }
    :: atomic { renewal != NONE -> renewal = NONE; sent = 0 }
    od }

active proctype clock() { end: do
    :: atomic { !promoted -> promoted = 1 }
    :: atomic { !(promoted && since >= LEARN && !(knows[0] && knows[1])) ->
         if :: promoted && since <= T + LEARN -> since++ :: else fi;
         i = 0;
         do
         :: i < 3 ->
            if :: question[i] != IDLE && asked[i] < NEVER -> asked[i]++ :: else fi;
            if :: confirmed[i] < NEVER -> confirmed[i]++ :: else fi;
            i++
         :: else -> break
         od;
         i = 0;
         if :: renewal != NONE && sent < NEVER -> sent++ :: else fi;
         if :: believed > 0 -> believed-- :: else fi;
         assert(!(since > T + LEARN && believed > 0)) }
    od }
