/* Who holds a lock at etcd beside whom: backends/etcd, for readers, writers and permits.
   README.md beside this file says what it shows and how to run it.

   Each of N acquisitions makes a key, whose value says its units and the limit. The store executes
   requests one after the other. A client learns of the line at any time after its key was made, and
   takes what it concluded then at any later time. Keys end at any time: lease.pml shows that whoever
   believes in its key has ceased to by then. An operator reads a value and writes it again with a mark,
   at any later time.

   N         acquisitions: each a writer, a reader, one permit of 2, or two of 3
   UNSEEN    a client may conclude from a line in which its own key is not seen yet
   BESIDE    a reader that finds keys is granted without comparing their values
   LATE      a writer believes that it writes until its downgrade is answered
   MIXED     permits are asked for without comparing the limit of those that are there
   CARELESS  the marker of permits is taken away without comparing that the line is empty
   BLIND     an operator writes a value without comparing the one that it read
   Claims: the units of those that believe fit the limit; all keys of a line are of one limit; the units
   in a key cover what is believed, and never grow. */
#ifndef N
#define N 3
#endif
#define ALL 9                             /* of a writer, and the limit of readers and writers */
byte place[N], units[N], limit[N];        /* the keys; place 0: none */
bit revision[N];                          /* of the key's last change, of two in turn */
byte believed[N];                         /* units that its client believes in */
bit ripe[N];                              /* its client has concluded that it fits */
bit asked[N];                             /* a downgrade is on its way */
bit compared[N];                          /* the revision that it compares */
byte next = 1;
bit marker;                               /* the line is one of permits */
byte read_units;                          /* by an operator */
byte sum, others, alike, j;

/* The units ahead of acquisition i with its own, the keys there, and those of its limit. */
inline count(i, until) {
    sum = units[i]; others = 0; alike = 0; j = 0;
    do
    :: j < N ->
       if :: j != i && place[j] > 0 && place[j] < until ->
             others++; sum = sum + units[j];
             if :: limit[j] == limit[i] -> alike++ :: else fi
          :: else fi;
       j++
    :: else -> break
    od
}
inline readers_only(i) {
    j = 0; alike = 1;
    do
    :: j < N ->
       if :: j != i && place[j] > 0 && units[j] != 1 -> alike = 0 :: else fi; j++
    :: else -> break
    od
}
inline fits_now(i) {
    count(i, place[i]);
    if :: sum <= limit[i] && alike == others -> ripe[i] = 1 :: else fi
}
inline put(i) { place[i] = next; next++ }
inline claims() {
    sum = 0; others = 0; j = 0;
    do
    :: j < N ->
       if :: believed[j] > 0 -> sum = sum + believed[j]; others = limit[j];
             assert(place[j] > 0 && believed[j] <= units[j])
          :: else fi;
       if :: place[j] > 0 -> assert(alike == 0 || alike == limit[j]); alike = limit[j] :: else fi;
       j++
    :: else -> break
    od;
    assert(sum <= others)
}
#define check() alike = 0; claims(); sum = 0; others = 0; alike = 0; j = 0

active [N] proctype acquisition() {
    byte i = _pid;
    atomic {
        if
        :: units[i] = ALL; limit[i] = ALL
        :: units[i] = 1; limit[i] = ALL
        :: units[i] = 1; limit[i] = 2
        :: units[i] = 2; limit[i] = 3
        fi
    }
#ifdef UNSEEN
    if :: atomic { count(i, next); if :: sum <= limit[i] && alike == others -> ripe[i] = 1 :: else fi }
       :: true
    fi;
#endif
    do                                                     /* the request that makes the key */
    :: atomic { count(i, next) ;
         if
         :: others == 0 && !marker -> put(i); ripe[i] = 1; believed[i] = units[i];
            marker = limit[i] < ALL
         :: others > 0 && limit[i] == ALL && !marker -> put(i); readers_only(i);
            if
#ifdef BESIDE
            :: units[i] == 1 ->
#else
            :: units[i] == 1 && alike ->
#endif
               ripe[i] = 1; believed[i] = 1
            :: else
            fi
#ifdef MIXED
         :: others > 0 && limit[i] < ALL && marker ->
#else
         :: others > 0 && limit[i] < ALL && marker && alike == others ->
#endif
            put(i); fits_now(i);
            if :: ripe[i] -> believed[i] = units[i] :: else fi
#ifdef CARELESS
         :: marker && others < N -> marker = 0
#else
         :: others == 0 && marker -> marker = 0               /* left by others: it asks again */
#endif
         :: else -> units[i] = 0; limit[i] = 0; goto end
         fi;
         check();
         if :: place[i] > 0 -> break :: else fi }
    :: atomic { units[i] = 0; limit[i] = 0; goto end }
    od;
    do
    :: atomic { place[i] > 0 && !ripe[i] -> fits_now(i) }     /* a list, or the watch */
    :: atomic { place[i] > 0 && ripe[i] && believed[i] == 0 && !asked[i] -> believed[i] = units[i]; check() }
    :: atomic { place[i] > 0 && believed[i] == ALL && !asked[i] ->
         asked[i] = 1; compared[i] = revision[i];
#ifndef LATE
         believed[i] = 1
#endif
         }
    :: atomic { asked[i] && revision[i] != compared[i] -> compared[i] = revision[i] }   /* it asks again */
    :: atomic { asked[i] && place[i] > 0 && units[i] == ALL && revision[i] == compared[i] ->
         units[i] = 1; revision[i] = 1 - revision[i]; asked[i] = 0; compared[i] = 0; check() }
#ifdef LATE
    :: atomic { units[i] == 1 && believed[i] == ALL -> believed[i] = 1 }
#endif
    :: atomic { place[i] > 0 ->                               /* released, withdrawn, or ended by time */
         believed[i] = 0; place[i] = 0; ripe[i] = 0; asked[i] = 0; compared[i] = 0; revision[i] = 0;
         count(i, next);
         if :: others == 0 -> marker = 0 :: true fi;          /* what ended by time leaves it */
         units[i] = 0; limit[i] = 0; goto end }
    od;
    end: skip
}

active proctype operator() {
    byte i;
    select(i : 0 .. N - 1);
    if
    :: atomic { place[i] > 0 -> read_units = units[i] }
    :: goto end
    fi;
    atomic {
        if
#ifdef BLIND
        :: place[i] > 0 ->
#else
        :: place[i] > 0 && units[i] == read_units ->
#endif
           assert(read_units <= units[i]);
           units[i] = read_units; revision[i] = 1 - revision[i]; check()
        :: else
        fi
    }
    end: skip
}
