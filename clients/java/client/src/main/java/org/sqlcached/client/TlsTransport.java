package org.sqlcached.client;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSocket;

/** A socket with TLS. The certificate must be the host's. */
final class TlsTransport implements Transport {
    private final SSLSocket socket;
    private final byte[] chunk = new byte[Limits.OUT];

    private TlsTransport(SSLSocket socket) {
        this.socket = socket;
    }

    /** The answer to a question for TLS: yes. */
    private static final int GRANTED = 'S';

    static TlsTransport open(Options options, String host, InetSocketAddress address, byte[] question) throws IOException {
        Socket plain = new Socket();
        try {
            plain.connect(address, Math.toIntExact(options.connectTimeout().toMillis()));
            plain.setTcpNoDelay(true);
            plain.setSoTimeout(Math.toIntExact(options.timeout().toMillis()));
            plain.getOutputStream().write(question);
            if (question.length > 0 && plain.getInputStream().read() != GRANTED) {
                throw new IOException("the daemon has no TLS there");
            }
            SSLContext context = options.tls();
            SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket(plain, host, address.getPort(), true);
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setEndpointIdentificationAlgorithm("HTTPS");
            socket.setSSLParameters(parameters);
            socket.startHandshake();
            return new TlsTransport(socket);
        } catch (IOException | RuntimeException why) {
            plain.close();
            throw why;
        }
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        int count = socket.getInputStream().read(chunk, 0, Math.min(chunk.length, into.remaining()));
        if (count > 0) {
            into.put(chunk, 0, count);
        }
        return count;
    }

    @Override
    public void write(ByteBuffer from) throws IOException {
        while (from.hasRemaining()) {
            int count = Math.min(chunk.length, from.remaining());
            from.get(chunk, 0, count);
            socket.getOutputStream().write(chunk, 0, count);
        }
    }

    @Override
    public boolean isAlive() {
        try {
            int before = socket.getSoTimeout();
            socket.setSoTimeout(1);
            try {
                socket.getInputStream().read();
                return false;
            } catch (SocketTimeoutException nothing) {
                socket.setSoTimeout(before);
                return true;
            }
        } catch (IOException why) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            socket.close();
        } catch (IOException why) {
            // It is gone in any case.
        }
    }
}
