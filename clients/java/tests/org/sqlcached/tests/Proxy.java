package org.sqlcached.tests;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** Stands before a daemon, and cuts or holds its answers. */
final class Proxy implements AutoCloseable {
    private final ServerSocket listener;
    private final int daemon;
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();

    /** Bytes of answers that are let through until the connection is cut; below 0 all are. */
    final AtomicInteger allowed = new AtomicInteger(-1);

    /** While it is there, answers wait for it. */
    volatile CountDownLatch gate;

    /** Is counted down when an answer is held. */
    volatile CountDownLatch held = new CountDownLatch(1);

    final AtomicInteger connections = new AtomicInteger();

    Proxy(Daemon daemon) throws IOException {
        this(daemon.port());
    }

    Proxy(int port) throws IOException {
        this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        this.daemon = port;
        run(this::accept);
    }

    private interface Work {
        void run() throws IOException, InterruptedException;
    }

    private static void run(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException | InterruptedException ended) {
                // One of the two has closed it.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    String location() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            connections.incrementAndGet();
            Socket server = new Socket("127.0.0.1", daemon);
            open.add(client);
            open.add(server);
            run(() -> copy(client, server, false));
            run(() -> copy(server, client, true));
        }
    }

    private void copy(Socket from, Socket to, boolean answers) throws IOException, InterruptedException {
        try (from; to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            byte[] chunk = new byte[8192];
            for (int count; (count = in.read(chunk)) > 0; ) {
                CountDownLatch waits = gate;
                if (answers && waits != null) {
                    held.countDown();
                    waits.await();
                }
                int left = allowed.get();
                if (answers && left >= 0) {
                    out.write(chunk, 0, Math.min(left, count));
                    if (left < count) {
                        allowed.set(-1);
                        return;
                    }
                    allowed.set(left - count);
                } else {
                    out.write(chunk, 0, count);
                }
            }
        }
    }

    /** From now on answers are held. */
    void hold() {
        held = new CountDownLatch(1);
        gate = new CountDownLatch(1);
    }

    /** Ends all connections; new ones are let through. */
    void cut() throws IOException {
        for (Socket each : open) {
            each.close();
        }
        open.clear();
    }

    void letGo() {
        CountDownLatch waits = gate;
        gate = null;
        waits.countDown();
    }

    @Override
    public void close() throws IOException {
        listener.close();
        for (Socket each : open) {
            each.close();
        }
    }
}
