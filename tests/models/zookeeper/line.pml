/* Readers and writers in one line at ZooKeeper: backends/zookeeper/queue.hpp. README.md beside this file
   says what it shows and how to run it.

   A node has a number, and a kind that its name says; the data of a writer's node says when its holder
   has become a reader. A client creates its node, lists the line once, and then only looks at the node
   that it waits for. Each step is one effect at the server or one thought of a client, so any time may
   pass between a request, its effect and its answer. A session ends at the servers only after its client
   has ceased to believe in its leases (session.pml); its nodes go some time later, and meanwhile the
   client stands in line again, with another node in another session.

   EARLY  the list is asked for before the node is created
   ADOPT  the node of the session before is taken for one's own
   LATE   a writer believes in exclusion until its downgrade is answered
   REMAKE a downgrade deletes the writer's node and creates a reader's
   FIRST  a reader waits for the first writer ahead of it, and looks at no other
   CURATOR  a downgrade is Curator's (5.5 and later): a reader's node in the writer's place, then the writer's is
          deleted; whoever waited for a writer's node lists the line again when it is gone
   TRUST  with CURATOR: it is let in without that list
   Claim: whoever believes to write is alone; and nobody waits for ever. */
#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifdef CURATOR
#define NODES 7
#else
#define NODES 5
#endif
bit there[NODES], writer[NODES];   /* at the servers, and as the name says */
byte place[NODES];                 /* in line: its number, or that of the writer that it comes from */
bit down[NODES];                   /* as the data says: its holder reads */
bit left[NODES];                   /* of a session that its client has given up */
bit again;                         /* a session was lost: one is, any time */
byte made, writing, reading;       /* nodes so far; clients that believe so */

#define alone assert(writing == 0 || writing + reading == 1)

inline list() {                    /* whom it has to wait for, as one answer shows them */
  d_step { ahead = 0; i = 0;
    do
    :: i < made -> if :: i != mine && (mine == NODES || place[i] <= place[mine]) && there[i] && (!shared || writer[i]) -> ahead = ahead | (1 << i) :: else fi; i++
    :: else -> break
    od; i = 0 }
}

inline pick() {                    /* the last of them */
  d_step { i = NODES;
    do
    :: i > 0 -> i--; if :: ahead & (1 << i) -> break :: else fi
    :: else -> break
    od }
}

inline create() {
  d_step { mine = made; place[mine] = made; there[mine] = 1; writer[mine] = !shared; made++ }
}

proctype client() {
#ifdef CURATOR
  byte from;
#endif
  byte mine = NODES, ahead, i;
  bit shared;
  if :: shared = 0 :: shared = 1 fi;
enter:
#ifdef ADOPT
  if :: mine < NODES && there[mine] -> goto entered :: else fi;
#endif
#ifdef EARLY
  mine = NODES; list(); create();
#else
  create();
#endif
#ifdef ADOPT
entered:
#endif
  if :: atomic { !again -> again = 1; goto lost } :: skip fi;  /* not answered, or answered */
#ifndef EARLY
  list();
#endif
#ifdef FIRST
  d_step { if :: shared && ahead -> ahead = ahead & (~ahead + 1) :: else fi };
#endif
  do
  :: ahead == 0 -> break
  :: else ->
     pick();
     if
#if defined(CURATOR) && !defined(TRUST)
     :: atomic { !there[i] -> if :: writer[i] -> list() :: else -> ahead = ahead & ~(1 << i) fi }
#else
     :: atomic { !there[i] || (shared && down[i]) -> ahead = ahead & ~(1 << i) }
#endif
     :: atomic { !again -> again = 1; goto lost }
     fi
  od;
  atomic { if :: shared -> reading++ :: else -> writing++ fi; alone };
  if
  :: atomic { !shared ->
#ifdef LATE
       shared = 1; down[mine] = 1 };
     atomic { writing--; reading++ }
#elif defined(REMAKE)
       shared = 1; writing--; reading++; there[mine] = 0 };
     create()
#elif defined(CURATOR)
       place[made] = place[mine]; there[made] = 1; from = mine; mine = made; made++ };
     atomic { shared = 1; writing--; reading++; there[from] = 0 }
#else
       shared = 1; writing--; reading++ };
     if :: down[mine] = 1 :: skip fi           /* it may never arrive */
#endif
  :: skip
  fi;
  atomic { if :: shared -> reading-- :: else -> writing-- fi };
  if
  :: atomic { there[mine] = 0; goto over }
  :: atomic { !again -> again = 1 }
  fi;
lost:
  left[mine] = 1;
  goto enter;
over:
  skip;
  d_step { mine = 0; ahead = 0; i = 0; shared = 0 }
}

active proctype servers() { end: do
  :: atomic { left[0] && there[0] -> there[0] = 0 }
  :: atomic { left[1] && there[1] -> there[1] = 0 }
  :: atomic { left[2] && there[2] -> there[2] = 0 }
  :: atomic { left[3] && there[3] -> there[3] = 0 }
  :: atomic { left[4] && there[4] -> there[4] = 0 }
#ifdef CURATOR
  :: atomic { left[5] && there[5] -> there[5] = 0 }
  :: atomic { left[6] && there[6] -> there[6] = 0 }
#endif
  od }

init { atomic { byte c; for (c : 1 .. CLIENTS) { run client() } } }
