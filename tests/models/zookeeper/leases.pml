/* Permits at ZooKeeper, beside a mutex of the same name and Curator's InterProcessSemaphoreV2.
   README.md beside this file says what it shows and how to run it.

   A permit is a numbered node in the folder `leases`; whoever has the first LIMIT of them holds. The
   limit is the data of the name's own node. It is written in one step that also deletes the folder,
   which the servers refuse while anything is in it; so a permit's node pins what is read after it was
   made. Whoever has made a node looks for those of the other kind: a mutex into the folder, a semaphore
   for nodes in line. Every step is one effect at the servers, so any time may pass in between.

   BEFORE   the limit is read before the permit's node is made, and not after
   KEEPS    the limit is written when the folder was seen empty, and the folder is not deleted
   BLIND    the mutex does not look into the folder
   NOLINE   a semaphore looks for nodes in line before its own are there, and not after
   CURATOR  one client is Curator's: it waits until no more than LIMIT nodes are there, and knows of
            nothing else, so there is no mutex
   Claim: no two limits are held by, no more than the limit, and nothing beside the mutex. */
#define NODES 5
bit folder, there[NODES], mutex;        /* at the servers; mutex: its node in line */
byte limit, made, count;                /* count: of what is there */
byte held[4];                           /* permits held by limit */
bit excluded;                           /* the mutex is held */

#define right assert(held[2] <= 2 && held[3] <= 3 && !(held[2] && held[3]) && \
                     !(excluded && (held[2] || held[3])))

inline remove_all() {
  atomic { for (i : 0 .. k - 1) { if :: there[mine + i] -> there[mine + i] = 0; count-- :: else fi } }
}
inline rank() {                         /* of the last of one's own */
  atomic { seen = 0; for (i : 0 .. NODES - 1) { if :: i < mine + k && there[i] -> seen++ :: else fi } }
}

proctype permits(byte n; byte k) {
  byte mine, i, seen, read;
  bit line;
open:
  atomic { if :: !folder -> folder = 1 :: else fi };
  read = limit;
  if
  :: read == n
#ifdef KEEPS
  :: read != n -> if :: count > 0 -> goto over :: count == 0 -> limit = n fi
#else
  :: read != n -> atomic { if :: folder && count == 0 && limit == read -> limit = n; folder = 0 :: else -> goto over fi };
     folder = 1
#endif
  fi;
#ifdef BEFORE
  read = limit; if :: read != n -> goto over :: else fi;
#endif
#ifdef NOLINE
  line = mutex; if :: line -> goto over :: else fi;
#endif
  atomic { if :: folder && made + k <= NODES -> mine = made; made = made + k; count = count + k;
                 for (i : 0 .. k - 1) { there[mine + i] = 1 }
              :: else -> goto over fi };
#ifndef BEFORE
  read = limit; if :: read != n -> remove_all(); goto over :: else fi;
#endif
#ifndef NOLINE
  line = mutex; if :: line -> remove_all(); goto over :: else fi;
#endif
  do
  :: rank(); if :: seen <= n -> break :: else fi
  :: remove_all(); goto over
  od;
  atomic { held[n] = held[n] + k; right };
  atomic { held[n] = held[n] - k };
  remove_all();
over:
  skip
}

proctype curator(byte n) {
  byte mine, i, k = 1, seen;
  atomic { folder = 1; if :: made < NODES -> mine = made; made++; there[mine] = 1; count++ :: else -> goto over fi };
  if :: atomic { count <= n -> seen = 1 } :: remove_all(); goto over fi;
  atomic { held[n]++; right };
  atomic { held[n]-- };
  remove_all();
over:
  skip
}

proctype exclusive() {
  mutex = 1;
#ifndef BLIND
  if :: count == 0 :: count > 0 -> goto gone fi;
#endif
  atomic { excluded = 1; right };
  atomic { excluded = 0 };
gone:
  mutex = 0
}

init { atomic {
#ifdef CURATOR
  limit = 2; run curator(2); run permits(2, 1); run permits(2, 2)
#else
  run permits(2, 2); run permits(2, 1); run permits(3, 2); run exclusive()
#endif
} }
