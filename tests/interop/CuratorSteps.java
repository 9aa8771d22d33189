// One holder or waiter of Curator's that a test leads step by step: CONNECT-STRING WHO. Reads a command a line and
// answers with a line: acquire LOCK NAME WAIT-MS, release LOCK NAME. LOCK is write, read (of InterProcessReadWriteLock,
// WHO is the data of its nodes), or permit (InterProcessSemaphoreMutex).
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.retry.RetryOneTime;

public final class CuratorSteps {
    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 10000, 20000, new RetryOneTime(100));
        client.start();
        Map<String, InterProcessLock> locks = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String node = "/holdfast/" + words[2];
            if (!locks.containsKey(words[1] + node)) {
                InterProcessReadWriteLock both =
                        new InterProcessReadWriteLock(client, node, args[1].getBytes(StandardCharsets.UTF_8));
                locks.put("write" + node, both.writeLock());
                locks.put("read" + node, both.readLock());
                locks.put("permit" + node, new InterProcessSemaphoreMutex(client, node));
            }
            InterProcessLock lock = locks.get(words[1] + node);
            if (words[0].equals("acquire")) {
                boolean granted = lock.acquire(Long.parseLong(words[3]), TimeUnit.MILLISECONDS);
                System.out.println(granted ? "granted" : "timed_out");
            } else {
                lock.release();
                System.out.println("released");
            }
        }
        client.close();
    }
}
