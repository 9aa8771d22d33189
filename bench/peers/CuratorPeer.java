// Curator's own InterProcessMutex: CONNECT-STRING PATH. What it reads and says is in README.md.
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public final class CuratorPeer {
    /** The version that the library's jar carries. */
    private static String version() throws IOException {
        Properties said = new Properties();
        try (InputStream in = InterProcessMutex.class.getResourceAsStream(
                "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties")) {
            if (in != null) said.load(in);
        }
        return said.getProperty("version", "of unknown version");
    }

    private static String quoted(String text) {
        return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replaceAll("\\p{Cntrl}", " ") + '"';
    }

    private static void acquire(InterProcessMutex mutex) throws Exception {
        if (!mutex.acquire(30, TimeUnit.SECONDS)) throw new IllegalStateException("not granted within 30 s");
    }

    /** Cycles for so long; the microseconds of each, as a JSON array. */
    private static String block(double seconds, InterProcessMutex mutex) throws Exception {
        StringBuilder times = new StringBuilder("[");
        long before = System.nanoTime();
        long end = before + (long) (1e9 * seconds);
        while (before < end) {
            acquire(mutex);
            mutex.release();
            long after = System.nanoTime();
            times.append(times.length() > 1 ? "," : "").append((after - before) / 1e3);
            before = after;
        }
        return times.append(']').toString();
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 10000, 15000, new RetryOneTime(100));
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, args[1]);
        System.out.println("{\"version\":" + quoted(version()) + ",\"settings\":" + quoted(
                "one InterProcessMutex for all cycles, session timeout 10 s asked for; Java "
                + System.getProperty("java.version") + ", serial collector") + "}");
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.startsWith("block ")) {
                    System.out.println("{\"us\":" + block(Double.parseDouble(line.substring(6)), mutex) + "}");
                } else if (line.equals("hold")) {
                    acquire(mutex);
                    System.out.println("{\"held\":true}");
                } else {
                    mutex.release();
                    System.out.println("{\"held\":false}");
                }
            }
        } catch (Exception error) {
            System.out.println("{\"failed\":" + quoted(error.toString()) + "}");
        }
        client.close();
        System.exit(0);
    }
}
