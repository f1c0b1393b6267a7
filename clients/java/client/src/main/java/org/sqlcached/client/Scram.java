package org.sqlcached.client;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** A login by SCRAM-SHA-256 (RFC 7677): the password is not sent, and the daemon proves that it knows it, too. */
final class Scram {
    static final String MECHANISM = "SCRAM-SHA-256";

    /** No channel binding, in the three forms that the exchange needs. */
    private static final String HEADER = "n,,";
    private static final int NONCE = 18;

    private final byte[] password;
    private final String first;
    private byte[] serverSignature;

    Scram(String password) {
        this.password = password.getBytes(StandardCharsets.UTF_8);
        byte[] nonce = new byte[NONCE];
        new SecureRandom().nextBytes(nonce);
        // PostgreSQL's protocol has named the role already.
        this.first = "n=,r=" + Base64.getEncoder().encodeToString(nonce);
    }

    String first() {
        return HEADER + first;
    }

    /** The proof, for the daemon's salt and its part of the nonce. */
    String last(String challenge) {
        Map<Character, String> parts = parts(challenge);
        String nonce = parts.getOrDefault('r', "");
        int rounds = Integer.parseInt(parts.getOrDefault('i', "0"));
        if (!nonce.startsWith(first.substring("n=,r=".length())) || rounds < 1 || rounds > Limits.SCRAM_ROUNDS) {
            throw new IllegalArgumentException("a challenge that is not SCRAM's");
        }
        byte[] salted = salted(Base64.getDecoder().decode(parts.getOrDefault('s', "")), rounds);
        String header = Base64.getEncoder().encodeToString(HEADER.getBytes(StandardCharsets.US_ASCII));
        String last = "c=" + header + ",r=" + nonce;
        byte[] all = (first + "," + challenge + "," + last).getBytes(StandardCharsets.UTF_8);
        byte[] clientKey = sum(salted, "Client Key".getBytes(StandardCharsets.US_ASCII));
        byte[] proof = mixed(clientKey, sum(digest(clientKey), all));
        serverSignature = sum(sum(salted, "Server Key".getBytes(StandardCharsets.US_ASCII)), all);
        return last + ",p=" + Base64.getEncoder().encodeToString(proof);
    }

    /** Whether the daemon knows the password. */
    boolean isProven(String answer) {
        byte[] proof = Base64.getDecoder().decode(parts(answer).getOrDefault('v', ""));
        return serverSignature != null && MessageDigest.isEqual(proof, serverSignature);
    }

    private static Map<Character, String> parts(String message) {
        Map<Character, String> found = new HashMap<>();
        for (String part : message.split(",")) {
            if (part.length() > 1 && part.charAt(1) == '=') {
                found.put(part.charAt(0), part.substring(2));
            }
        }
        return found;
    }

    /** PBKDF2 with one block. */
    private byte[] salted(byte[] salt, int rounds) {
        byte[] block = Arrays.copyOf(salt, salt.length + 4);
        block[salt.length + 3] = 1;
        byte[] each = sum(password, block);
        byte[] all = each;
        for (int round = 1; round < rounds; round++) {
            each = sum(password, each);
            all = mixed(all, each);
        }
        return all;
    }

    private static byte[] mixed(byte[] one, byte[] other) {
        byte[] all = new byte[one.length];
        for (int at = 0; at < all.length; at++) {
            all[at] = (byte) (one[at] ^ other[at]);
        }
        return all;
    }

    private static byte[] sum(byte[] key, byte[] data) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(new SecretKeySpec(key, "HmacSHA256"));
            return mac.doFinal(data);
        } catch (GeneralSecurityException why) {
            throw new IllegalStateException("every Java has HmacSHA256", why);
        }
    }

    private static byte[] digest(byte[] data) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(data);
        } catch (GeneralSecurityException why) {
            throw new IllegalStateException("every Java has SHA-256", why);
        }
    }
}
