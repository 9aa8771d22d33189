// Curator's own InterProcessMutex, contending: CONNECT-STRING STORE-PORT NAME FOLDER ROUNDS.
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
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
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

    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 5000, 20000, new RetryOneTime(100));
        client.start();
        Store store = new Store(Integer.parseInt(args[1]));
        Path witness = Path.of(args[3], "witness");
        InterProcessMutex mutex = new InterProcessMutex(client, "/holdfast/" + args[2]);
        int rounds = Integer.parseInt(args[4]);
        for (int i = 0; i < rounds; ++i) {
            if (!mutex.acquire(60, TimeUnit.SECONDS)) {
                System.err.println("Curator did not get the lock within a minute");
                System.exit(1);
            }
            if (!enter(witness)) store.ask("INCR", "overlaps");
            String counter = store.ask("GET", "counter");
            long n = counter == null ? 0 : Long.parseLong(counter);
            store.ask("EVAL", "redis.call('SET','counter',ARGV[1]) redis.call('INCR','done') "
                    + "redis.call('INCR','foreign')", "0", Long.toString(n + 1));
            Files.deleteIfExists(witness);
            mutex.release();
        }
        client.close();
    }
}
