/* A waiter's key at etcd that is made on a lease which is kept alive: backends/etcd, acquire.cpp and leave.cpp.
   README.md beside this file says what it shows and how to run it.

   One owner asks twice at most for its key, and leaves. A request is answered, or not: then the store may execute
   it at any later time, or never. The waiters' lease W is kept alive while the client has waiters and has not left it;
   a young lease Y ends at any time. A key and a tombstone end with their lease.

   YOUNG    the tombstone is on a young lease, whatever lease the requests were on
   MIXED    the second request takes either kind of lease, and the tombstone is on that kind
   FORGETS  an owner that gives up without an answer leaves the waiters' lease as it is
   Claim: once the owner has left, or given up, its key does not stand on a lease that is kept alive. */
#define NONE 0
#define Y 1
#define W 2
byte key, tombstone;
byte sent[2];                             /* the lease of a request that may still be executed */
byte kind;                                /* of the owner's last request */
bit y_alive = 1, w_alive = 1, kept = 1;
bit leaving;                              /* a request to leave that may still be executed */
bit doubt;                                /* a request for the key was not answered */
bit left, gave_up;

inline enter(lease) {
    if
    :: key == NONE && tombstone == NONE && (lease == Y && y_alive || lease == W && w_alive) -> key = lease
    :: else
    fi
}
inline leave() {
    key = NONE;
    if
#ifdef YOUNG
    :: doubt -> tombstone = Y
#else
    :: doubt -> tombstone = kind
#endif
    :: else
    fi
}
#define stands ((left || gave_up) && key == W && kept)

active proctype owner() {
    byte i = 0;
    do
    :: i < 2 ->
       if
#ifdef MIXED
       :: kind = Y
       :: kind = W
#else
       :: kind == NONE || !doubt -> if :: kind = Y :: kind = W fi
       :: doubt                                              /* as the one before */
#endif
       fi;
       if
       :: atomic { enter(kind); goto in_line }               /* answered */
       :: atomic { sent[i] = kind; doubt = 1 }
       fi;
       i++
    :: i > 0 -> break                                        /* it waits no longer */
    od;
in_line:
    if
    :: atomic { leave(); left = 1 }
    :: leaving = 1
    fi;
    if
    :: left
    :: else ->
       if
       :: atomic { leaving -> leave(); leaving = 0; left = 1 }          /* asked again, and answered */
       :: atomic { gave_up = 1;
#ifndef FORGETS
            if :: doubt && kind == W || key == W -> kept = 0 :: else fi
#endif
          }
       fi
    fi
}

active proctype store() {
    do
    :: atomic { sent[0] != NONE -> enter(sent[0]); sent[0] = NONE; assert(!stands) }
    :: atomic { sent[1] != NONE -> enter(sent[1]); sent[1] = NONE; assert(!stands) }
    :: atomic { leaving -> leave(); leaving = 0 }
    :: atomic { y_alive -> y_alive = 0; if :: key == Y -> key = NONE :: else fi }
    /* That of the tombstone is as young, or younger, as those of requests before it. */
#ifdef YOUNG
    :: atomic { tombstone == Y -> tombstone = NONE }
#else
    :: atomic { tombstone == Y && !y_alive -> tombstone = NONE }
#endif
    :: atomic { w_alive && !kept -> w_alive = 0;
         if :: key == W -> key = NONE :: else fi;
         if :: tombstone == W -> tombstone = NONE :: else fi }
    :: timeout -> assert(!stands); break
    od
}
