import { expect } from 'chai';
import fc from 'fast-check';
import type { z } from 'zod';
import {
  CONTACT_PATTERN,
  IMAGE_PATTERN,
  INVOCATION_PATTERN,
  ISSUER_PATTERN,
  NAME_PATTERN,
  ORIGIN_PATTERN,
  REDIRECT_PATTERN,
  RETURN_PATTERN,
  URI_PATTERN,
  WEB_ADDRESS_PATTERN,
} from '../../../domain/shared/address-patterns.ts';
import { RedirectAddress } from '../../../domain/shared/redirect-address.ts';
import {
  ContactUri,
  HarmlessUri,
  ImageUri,
  IssuerAddress,
  NameUri,
  WebAddress,
} from '../../../domain/shared/web-address.ts';
import { PresentationConfigurationBody, RedirectUri } from '../../../domain/verification/configuration.ts';
import { Origin } from '../../../domain/verification/page-origin.ts';

const InvocationUri = PresentationConfigurationBody.shape.invocationUri;

/** What the API document says of an address, how the service reads it, and addresses that people write. */
const KINDS: readonly (readonly [string, string, z.ZodType, readonly string[]])[] = [
  [
    'an address',
    WEB_ADDRESS_PATTERN,
    WebAddress,
    ['https://acme.example/a?b=c#d', 'http://127.0.0.1:65535', 'http://[::1]:80/', 'http://my_backend:8080'],
  ],
  ['an issuer', ISSUER_PATTERN, IssuerAddress, ['https://as.example:8443/realms/acme', 'https://as.example']],
  [
    'an image',
    IMAGE_PATTERN,
    ImageUri,
    ['https://acme.example/logo.png', 'data:image/png;base64,iVBORw0KGgo=', 'data:image/svg+xml,%3Csvg/%3E'],
  ],
  [
    'a contact',
    CONTACT_PATTERN,
    ContactUri,
    ['mailto:help@acme.example', 'tel:+49-30-1234', 'https://acme.example/help'],
  ],
  [
    'a return address',
    RETURN_PATTERN,
    RedirectUri,
    ['https://shop.example/done?session={sessionId}', 'com.example.app:/done/{sessionId}'],
  ],
  [
    'a redirect address',
    REDIRECT_PATTERN,
    RedirectAddress,
    ['https://wallet.example/cb?a=b', 'com.example.wallet:/cb', 'openid4vp://', 'http://localhost:3000/cb'],
  ],
  [
    'what starts a wallet',
    INVOCATION_PATTERN,
    InvocationUri,
    ['openid4vp://', 'swiyu-verify://', 'https://wallet.example/present', 'com.example.wallet://', 'mine://'],
  ],
  [
    'an origin',
    ORIGIN_PATTERN,
    Origin,
    ['https://shop.example', 'http://localhost:3000', 'android:apk-key-hash:abc'],
  ],
];

/** Pieces of addresses that are put together at random. */
const PARTS = [
  ...[
    'https://',
    'HTTP://',
    'http:',
    'mailto:',
    'tel:',
    'data:image/png;base64,AAAA',
    'com.example.app:',
    'openid4vp://',
  ],
  ...[
    'localhost',
    'my_backend',
    'münchen.example',
    '127.0.0.1',
    '[::1]',
    ':8080',
    'user:pw@',
    '/',
    '\\',
    '?',
    '#',
    ' ',
  ],
  ...['a', 'ä', '[x]', '{sessionId}', '|', '%zz', '\n', '\u0000', '*'],
];

describe('What the API document says of addresses', () => {
  for (const [what, pattern, schema, written] of KINDS) {
    it(`allows every ${what} that the service accepts`, () => {
      const parts = fc.constantFrom(...PARTS);
      const text = fc.oneof(
        fc.webUrl(),
        fc.array(parts, { maxLength: 8 }).map((some) => some.join('')),
      );
      fc.assert(
        fc.property(text, fc.string({ maxLength: 3 }), (start, end) => {
          const address = start + end;
          if (schema.safeParse(address).success) expect(address).to.match(new RegExp(pattern, 'u'));
        }),
        { numRuns: 2_000 },
      );
    });

    it(`allows ${what} as people write it`, () => {
      for (const text of written) {
        expect(new RegExp(pattern, 'u').test(text), text).to.equal(true);
        expect(schema.safeParse(text).success, text).to.equal(true);
      }
    });
  }

  it('allows no scheme of a browser, a program or a protocol to start a wallet', () => {
    for (const scheme of [
      'http',
      'javascript',
      'data',
      'file',
      'blob',
      'vbscript',
      'intent',
      'microsoft-edge',
    ]) {
      for (const text of [`${scheme}://`, `${scheme}://x/y`, `${scheme.toUpperCase()}://x`]) {
        expect(InvocationUri.safeParse(text).success, text).to.equal(false);
        expect(new RegExp(INVOCATION_PATTERN, 'u').test(text), text).to.equal(false);
      }
    }
    for (const text of [
      'chrome-extension://x',
      'ms-settings://',
      'search-ms://x',
      'tel://1',
      'ws://x',
      'ftp://x',
    ])
      expect(InvocationUri.safeParse(text).success, text).to.equal(false);
  });

  it('allows names of every kind, and nothing that runs or opens something', () => {
    for (const text of ['urn:eudi:pid:1', 'https://acme.example/type', 'did:web:acme.example', 'oid:1.2.3']) {
      expect(
        [new RegExp(URI_PATTERN, 'u').test(text), HarmlessUri.safeParse(text).success],
        text,
      ).to.deep.equal([true, true]);
    }
    for (const text of ['javascript:alert(1)', ' data:text/html,x', 'File:///etc/passwd', 'a name']) {
      expect(
        [new RegExp(URI_PATTERN, 'u').test(text), HarmlessUri.safeParse(text).success],
        text,
      ).to.deep.equal([false, false]);
    }
  });

  it('allows names that are no addresses, and nothing that runs or opens something, as the name of a type', () => {
    const of = (text: string) => [new RegExp(NAME_PATTERN, 'u').test(text), NameUri.safeParse(text).success];
    for (const text of [
      'urn:eudi:pid:1',
      'https://acme.example/type',
      'student',
      'org.acme.card',
      'a/b?v=1#x',
    ]) {
      expect(of(text), text).to.deep.equal([true, true]);
    }
    for (const text of ['Student card', 'a|b', 'karte-ä']) expect(of(text), text).to.deep.equal([true, true]);
    for (const text of ['javascript:alert(1)', 'File:///etc/passwd', '']) {
      expect(of(text), text).to.deep.equal([false, false]);
    }
  });
});
