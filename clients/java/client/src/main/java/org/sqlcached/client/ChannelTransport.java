package org.sqlcached.client;

import java.io.IOException;
import java.net.SocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * A channel that blocks. An interrupt closes it, so that nobody reads the rest of an answer. It costs one system call
 * for each read, where a socket with a timeout costs three.
 */
final class ChannelTransport implements Transport {
    private final SocketChannel channel;

    private ChannelTransport(SocketChannel channel) {
        this.channel = channel;
    }

    static ChannelTransport open(SocketAddress address, long millis) throws IOException {
        boolean unix = address instanceof UnixDomainSocketAddress;
        SocketChannel channel = unix ? SocketChannel.open(StandardProtocolFamily.UNIX) : SocketChannel.open();
        try {
            connect(channel, address, millis);
            if (!unix) {
                channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
                channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
            }
            return new ChannelTransport(channel);
        } catch (IOException | RuntimeException why) {
            channel.close();
            throw why;
        }
    }

    private static void connect(SocketChannel channel, SocketAddress address, long millis) throws IOException {
        if (address instanceof UnixDomainSocketAddress) {
            channel.connect(address);
            return;
        }
        channel.configureBlocking(false);
        if (!channel.connect(address)) {
            try (Selector selector = Selector.open()) {
                channel.register(selector, SelectionKey.OP_CONNECT);
                selector.select(millis);
                if (!channel.finishConnect()) {
                    throw new SocketTimeoutException("no connection in time");
                }
            }
        }
        channel.configureBlocking(true);
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        return channel.read(into);
    }

    @Override
    public void write(ByteBuffer from) throws IOException {
        while (from.hasRemaining()) {
            channel.write(from);
        }
    }

    @Override
    public boolean isAlive() {
        try {
            channel.configureBlocking(false);
            boolean alive = channel.read(ByteBuffer.allocate(1)) == 0;
            channel.configureBlocking(true);
            return alive;
        } catch (IOException why) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            channel.close();
        } catch (IOException why) {
            // It is gone in any case.
        }
    }
}
