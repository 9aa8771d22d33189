// Curator's own locks, contending: CONNECT-STRING STORE-PORT NAME FOLDER ROUNDS KIND [PERMITS].
// KIND: mutex, shared_mutex (which is also read now and then), semaphore (SemaphoreMutex, or SemaphoreV2 with as
// many PERMITS), selector (LeaderSelector), latch (LeaderLatch).
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

public final class CuratorLock {
    /** The store: just enough of Redis' protocol to ask one thing at a time. */
    private static final class Store {
        private final InputStream in;
        private final OutputStream out;

        Store(int port) throws IOException {
            Socket socket = new Socket("127.0.0.1", port);
            socket.setTcpNoDelay(true);
            in = new BufferedInputStream(socket.getInputStream());
            out = socket.getOutputStream();
        }

        private String line() throws IOException {
            StringBuilder text = new StringBuilder();
            for (int c = in.read(); c != '\n'; c = in.read()) {
                if (c < 0) throw new IOException("the store has closed the connection");
                if (c != '\r') text.append((char) c);
            }
            return text.toString();
        }

        String ask(String... words) throws IOException {
            StringBuilder text = new StringBuilder("*" + words.length + "\r\n");
            for (String w : words) text.append("$" + w.length() + "\r\n" + w + "\r\n");
            out.write(text.toString().getBytes(StandardCharsets.UTF_8));
            String first = line();
            if (first.startsWith("-")) throw new IOException(first);
            if (!first.startsWith("$")) return first.substring(1);
            return first.equals("$-1") ? null : line();
        }
    }

    /** Makes the witness; false when somebody who lives has made it. See witness.py. */
    private static boolean enter(Path witness) throws IOException {
        Path me = Path.of(Long.toString(ProcessHandle.current().pid()));
        try {
            Files.createSymbolicLink(witness, me);
            return true;
        } catch (FileAlreadyExistsException e) {
            // Whose?
        }
        try {
            long other = Long.parseLong(Files.readSymbolicLink(witness).toString());
            if (ProcessHandle.of(other).map(ProcessHandle::isAlive).orElse(false)) return false;
            Files.delete(witness);
            Files.createSymbolicLink(witness, me);
            return true;
        } catch (NoSuchFileException | FileAlreadyExistsException e) {
            return false;
        }
    }

    /** Somebody who lives is in. */
    private static boolean somebody(Path witness) throws IOException {
        try {
            long other = Long.parseLong(Files.readSymbolicLink(witness).toString());
            return ProcessHandle.of(other).map(ProcessHandle::isAlive).orElse(false);
        } catch (NoSuchFileException e) {
            return false;
        }
    }

    /** One round of work while holding: see witness.py. */
    private static void work(Store store, Path witness, int permits) throws IOException {
        Path mine = null;
        for (int i = 0; i < permits && mine == null; ++i) {
            Path one = i == 0 ? witness : Path.of(witness + "." + i);
            boolean made = enter(one);
            while (!made && permits > 1 && !somebody(one)) made = enter(one);
            if (made) mine = one;
        }
        if (mine == null) store.ask("INCR", "overlaps");
        String counter = store.ask("GET", "counter");
        long n = counter == null ? 0 : Long.parseLong(counter);
        if (permits > 1 && !witness.equals(mine)) store.ask("INCR", "together");
        // Long enough inside for others to come in, too.
        for (int look = 0; permits > 1 && look < 20; ++look) store.ask("GET", "counter");
        String count = permits > 1 ? "redis.call('INCR','counter')" : "redis.call('SET','counter',ARGV[1])";
        store.ask("EVAL", count + " redis.call('INCR','done') redis.call('INCR','foreign')", "0",
                Long.toString(n + 1));
        if (mine != null || permits == 1) Files.deleteIfExists(mine == null ? witness : mine);
    }

    private static void late(String what) {
        System.err.println("Curator did not get " + what + " within a minute");
        System.exit(1);
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 5000, 20000, new RetryOneTime(100));
        client.start();
        Store store = new Store(Integer.parseInt(args[1]));
        Path witness = Path.of(args[3], "witness");
        String node = "/holdfast/" + args[2];
        int rounds = Integer.parseInt(args[4]);
        int permits = args.length > 6 ? Integer.parseInt(args[6]) : 1;
        switch (args[5]) {
            case "selector":
                select(client, node, rounds, store, witness);
                break;
            case "latch":
                for (int i = 0; i < rounds; ++i)
                    try (LeaderLatch latch = new LeaderLatch(client, node)) {
                        latch.start();
                        if (!latch.await(60, TimeUnit.SECONDS)) late("to lead");
                        work(store, witness, permits);
                    }
                break;
            case "semaphore":
                if (permits == 1) {
                    take(new InterProcessSemaphoreMutex(client, node), null, rounds, store, witness);
                    break;
                }
                InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, node, permits);
                for (int i = 0; i < rounds; ++i) {
                    Lease lease = semaphore.acquire(60, TimeUnit.SECONDS);
                    if (lease == null) late("a permit");
                    work(store, witness, permits);
                    semaphore.returnLease(lease);
                }
                break;
            case "shared_mutex":
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, node);
                take(both.writeLock(), both.readLock(), rounds, store, witness);
                break;
            default:
                take(new InterProcessMutex(client, node), null, rounds, store, witness);
        }
        client.close();
    }

    /** Leads again and again, each time for one round of work. */
    private static void select(CuratorFramework client, String node, int rounds, Store store, Path witness)
            throws Exception {
        CountDownLatch left = new CountDownLatch(rounds);
        LeaderSelector selector = new LeaderSelector(client, node, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework c) throws Exception {
                if (left.getCount() > 0) work(store, witness, 1);
                left.countDown();
            }
        });
        selector.autoRequeue();
        selector.start();
        if (!left.await(200, TimeUnit.SECONDS)) late("to lead often enough");
        selector.close();
    }

    private static void take(InterProcessLock mutex, InterProcessLock reader, int rounds, Store store, Path witness)
            throws Exception {
        for (int i = 0; i < rounds; ++i) {
            if (!mutex.acquire(60, TimeUnit.SECONDS)) late("the lock");
            work(store, witness, 1);
            mutex.release();
            if (reader == null || i % 4 != 0) continue;
            if (!reader.acquire(60, TimeUnit.SECONDS)) late("the lock to read");
            for (int look = 0; look < 2; ++look) {
                if (somebody(witness)) store.ask("INCR", "overlaps");
                store.ask("GET", "counter");
            }
            reader.release();
        }
    }
}
