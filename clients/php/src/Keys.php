<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** Keys as the daemon has them: text. Bytes that are no text are written as ESC and two hexadecimal digits. */
final class Keys
{
    private const ESCAPE = "\x1b";

    private function __construct()
    {
    }

    /** The text of a key. Different keys have different texts, and what begins alike still does. */
    public static function text(string $key): string
    {
        if (!str_contains($key, "\0") && !str_contains($key, self::ESCAPE) && self::isText($key)) {
            return $key;
        }
        return self::escaped($key);
    }

    private static function escaped(string $key): string
    {
        $text = '';
        // Whole letters of UTF-8 but NUL and ESC, or one byte of anything else.
        $letter = '[\x01-\x1a\x1c-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}'
            . '|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}';
        for ($at = 0; $at < strlen($key); $at += $length) {
            $length = preg_match("/\\G(?:$letter)+/", $key, $found, 0, $at) === 1 ? strlen($found[0]) : 1;
            $text .= isset($found[0]) ? $found[0] : self::ESCAPE . bin2hex($key[$at]);
        }
        return $text;
    }

    /** Whether bytes are text: UTF-8. */
    public static function isText(string $data): bool
    {
        return preg_match('//u', $data) === 1;
    }

    /** The first text behind all those that begin with a prefix; null if there is none. */
    public static function after(string $prefix): ?string
    {
        $letters = preg_split('//u', $prefix, -1, PREG_SPLIT_NO_EMPTY) ?: [];
        while ($letters !== []) {
            $code = self::code((string) array_pop($letters));
            if ($code < 0x10FFFF) {
                // What surrogates would be is no letter.
                return implode('', $letters) . self::letter($code + 1 === 0xD800 ? 0xE000 : $code + 1);
            }
        }
        return null;
    }

    /** The number of a letter of UTF-8. */
    private static function code(string $letter): int
    {
        $bytes = array_values((array) unpack('C*', $letter));
        $code = $bytes[0] & [0, 0x7F, 0x1F, 0x0F, 0x07][count($bytes)];
        for ($at = 1; $at < count($bytes); $at++) {
            $code = $code << 6 | $bytes[$at] & 0x3F;
        }
        return $code;
    }

    private static function letter(int $code): string
    {
        return match (true) {
            $code < 0x80 => chr($code),
            $code < 0x800 => pack('C2', 0xC0 | $code >> 6, 0x80 | $code & 0x3F),
            $code < 0x10000 => pack('C3', 0xE0 | $code >> 12, 0x80 | $code >> 6 & 0x3F, 0x80 | $code & 0x3F),
            default => pack('C4', 0xF0 | $code >> 18, 0x80 | $code >> 12 & 0x3F, 0x80 | $code >> 6 & 0x3F, 0x80 | $code & 0x3F),
        };
    }
}
