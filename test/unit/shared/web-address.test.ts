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
import { isRedirectAddress, RedirectAddress } from '../../../domain/shared/redirect-address.ts';
import { escapedUri, isUri, isUriReference, normalUri } from '../../../domain/shared/uri.ts';
import {
  ContactUri,
  HarmlessUri,
  ImageUri,
  IssuerAddress,
  isSameIssuer,
  isWebAddress,
  NameUri,
  WebAddress,
} from '../../../domain/shared/web-address.ts';
import { PresentationConfigurationBody, RedirectUri } from '../../../domain/verification/configuration.ts';
import { Origin } from '../../../domain/verification/dc-api-settings.ts';

describe('web address', () => {
  const rows: [string, boolean][] = [
    ['https://shop.example/a?b=c', true],
    ['http://localhost:3000', true],
    ['ftp://shop.example', false],
    ['shop.example', false],
    ['https://', false],
    ['https://user@shop.example', false],
    ['https://:secret@shop.example', false],
  ];
  for (const [text, isAccepted] of rows) {
    it(`${text} is ${isAccepted ? 'accepted' : 'rejected'}`, () => expect(isWebAddress(text)).to.equal(isAccepted));
  }
});

describe('displayed address', () => {
  const longPath = 'x'.repeat(2048);
  const pixel = 'data:image/png;base64,iVBORw0KGgo=';
  const rows: [string, (text: string) => boolean, string[], string[]][] = [
    [
      'an image',
      (text) => ImageUri.safeParse(text).success,
      ['https://a.example/logo.png', pixel, `data:image/svg+xml;base64,${'A'.repeat(9_000)}`, 'data:image/svg+xml;charset=utf-8,%3Csvg%3E'],
      [
        '',
        'logo.png',
        'https://user@a.example/logo.png',
        'data:text/html;base64,iVBORw0KGgo=',
        'data:image/png,<script>',
        `https://a.example/${'x'.repeat(100_000)}`,
        `${pixel.slice(0, -1)}${'A'.repeat(100_000)}`,
      ],
    ],
    [
      'a contact address',
      (text) => ContactUri.safeParse(text).success,
      ['https://a.example', 'http://a.example', 'mailto:a@a.example', 'tel:+491'],
      ['a@a.example', 'ftp://a.example', 'javascript:alert(1)', `https://a.example/${longPath}`],
    ],
    [
      'an issuer',
      (text) => IssuerAddress.safeParse(text).success,
      ['https://a.example', 'https://a.example/tenant/', 'https://a.example/{realm}', 'https://ä.example'],
      ['https://a.example?', 'https://a.example/#', 'https://u:p@a.example', 'https://a.example/a\tb', 'urn:a'],
    ],
    [
      'a page',
      (text) => WebAddress.safeParse(text).success,
      ['https://a.example?b=c#d', 'https://a.example/?f[x]=1', 'http://my_backend:8080/{x}', 'https://ä.example'],
      ['urn:a', 'https://u:p@a.example/ä', 'https://a.example/\u0000', `https://a.example/${longPath}`],
    ],
    [
      'a harmless address',
      (text: string) => HarmlessUri.safeParse(text).success,
      ['urn:eudi:pid:1', 'https://a.example', 'tag:a'],
      ['no address', ' javascript:alert(1)', 'JAVASCRIPT:x', 'data:,x', 'file:///etc', 'view-source:https://a'],
    ],
    [
      'a name',
      (text) => NameUri.safeParse(text).success,
      ['eu.europa.ec.eudi.pid.1', 'urn:eudi:pid:1', 'Student card', 'karte-ä', 'a|b'],
      ['', ' ', 'a\nb', '1:2', 'urn:karte:ä', ' javascript:alert(1)', 'blob:https://a.example/1', 'x'.repeat(2049)],
    ],
  ];
  for (const [description, isAccepted, acceptedTexts, rejectedTexts] of rows) {
    for (const text of acceptedTexts) {
      it(`is accepted if it is ${description}: ${text.slice(0, 50)}`, () => expect(isAccepted(text)).to.equal(true));
    }
    for (const text of rejectedTexts) {
      it(`is rejected if it is ${description}: "${text.slice(0, 50)}" (${text.length})`, () => expect(isAccepted(text)).to.equal(false));
    }
  }
});

describe('issuer with a non-ASCII host name', () => {
  it('is stored with an A-label, and matches any notation of a server', () => {
    expect(IssuerAddress.parse('https://münchen.example/realms/a')).to.equal('https://xn--mnchen-3ya.example/realms/a');
    expect(isSameIssuer('https://münchen.example', 'https://xn--mnchen-3ya.example')).to.equal(true);
    expect(isSameIssuer('https://as.example', 'https://as.example/')).to.equal(false);
    expect(isSameIssuer('https://as.example', 'https://AS.example')).to.equal(false);
  });
});

describe('URI', () => {
  const URIS = [
    'https://acme.example/a%7Cb?c=d&e[]#f'.replace('[]', '%5B%5D'),
    'http://[::1]:80/x',
    'https://user@[2001:db8::1]/',
    'urn:eudi:pid:1',
    'com.example.app:/done',
    'mailto:a@b.example',
    'https://a.example/?q=(1)!*',
  ];
  for (const uri of URIS) it(`is accepted: ${uri}`, () => expect(isUri(uri)).to.equal(true));

  const REJECTED = [
    '',
    'urn:',
    'a name',
    '1:2',
    'https:acme.example',
    'https:///x',
    'https://?x',
    'https://acme.example/a|b',
    'https://acme.example/a b',
    'https://acme.example/ä',
    'https://acme.example/[x]',
    'https://acme.example/?x={y}',
    'https://acme.example/%',
    'https://acme.example/%zz',
    'https://acme.example/a#b#c',
    'https://acme.example/"x"',
    'https://acme.example\\evil',
    'https://acme.example/\n',
    'https://acme.example/\u0000',
    ' https://acme.example/',
    'https://acme.example/\u202e',
  ];
  for (const text of REJECTED) it(`is rejected: ${JSON.stringify(text)}`, () => expect(isUri(text)).to.equal(false));

  it('may be relative as the name of a type, unless its first part has a colon', () => {
    for (const name of ['student', 'org.acme.card', 'a/b:c', './a:b', 'urn:x']) {
      expect(isUriReference(name), name).to.equal(true);
    }
    for (const name of ['', 'Student card', '1:2', 'a|b', 'urn:', 'karte-ä', 'a\tb']) {
      expect(isUriReference(name), name).to.equal(false);
    }
  });
});

describe('normal form of an address', () => {
  const rows: [string, string][] = [
    ['https://acme.example', 'https://acme.example'],
    ['https://ACME.example/x?', 'https://ACME.example/x?'],
    ['urn:a', 'urn:a'],
    ['http://my_backend:8080/x', 'http://my_backend:8080/x'],
    ['https://acme.example/?filter[x]=1', 'https://acme.example/?filter%5Bx%5D=1'],
    ['https://acme.example/p?x={y}', 'https://acme.example/p?x=%7By%7D'],
    ['https://acme.example/a|b%zz', 'https://acme.example/a%7Cb%25zz'],
    ['https://acme.example/logo für alle.png', 'https://acme.example/logo%20f%C3%BCr%20alle.png'],
    ['https://müller.example/x', 'https://xn--mller-kva.example/x'],
    ['https://müller.example', 'https://xn--mller-kva.example'],
    ['https://müller.example/', 'https://xn--mller-kva.example/'],
    [' https://acme.example/x\n', 'https://acme.example/x'],
    ['https://acme.example\\@evil.example/ä', 'https://acme.example/@evil.example/%C3%A4'],
    ['mailto:a b@c.example', 'mailto:a%20b@c.example'],
    ['tel:+49 1', 'tel:+49%201'],
  ];
  for (const [text, normalized] of rows) {
    it(`of ${JSON.stringify(text)} is ${normalized}`, () => expect(normalUri(text)).to.equal(normalized));
  }

  it('does not exist for texts with control characters inside and for texts that are not addresses', () => {
    for (const unchanged of ['https://acme.example/\nä', 'java\nscript:ä', 'student card', '/ä', 'https://']) {
      expect(normalUri(unchanged)).to.equal(unchanged);
    }
  });

  it('is a URI with the same host, and its own normal form', () => {
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), fc.string(), (url, suffix) => {
        const text = `${url}/${suffix}`;
        const normalized = normalUri(text);
        fc.pre(normalized !== text || isUri(text));
        expect(isUri(normalized), normalized).to.equal(true);
        expect(normalUri(normalized)).to.equal(normalized);
        expect(new URL(normalized).host).to.equal(new URL(text).host);
      }),
    );
  });

  it('of an address that an earlier release accepted is a URI, whatever it contained', () => {
    expect(escapedUri('https://shop.example/a|b?c=[d]#e|f')).to.equal('https://shop.example/a%7Cb?c=%5Bd%5D#e%7Cf');
    expect(escapedUri('com.example.app:/done?x={y}%')).to.equal('com.example.app:/done?x=%7By%7D%25');
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), fc.string(), (url, suffix) => {
        const { href } = new URL(`${url}/${suffix}`);
        expect(isUri(escapedUri(href)), href).to.equal(true);
        expect(new URL(escapedUri(href)).host).to.equal(new URL(href).host);
      }),
    );
  });
});

describe('redirect address', () => {
  for (const text of [
    'https://wallet.example/callback?from=here&to=%2Fthere',
    'https://wallet.example:8443',
    'https://wallet.example:443/the-port-that-is-meant-anyway',
    'HTTPS://WALLET.example/',
    'http://localhost:3000/callback',
    'http://localhost:80/',
    'http://127.0.0.1/',
    'http://[::1]:9/',
    'com.example.wallet:/callback',
    'com.example-2.wallet+x://callback',
    'openid4vp://authorize',
    'haip:',
  ]) {
    it(`is accepted: ${text}`, () => expect(isRedirectAddress(text)).to.equal(true));
  }

  for (const [description, text] of [
    ['with a fragment', 'https://wallet.example/#here'],
    ['with a space', 'https://wallet.example/a b'],
    ['with a backslash', 'https://wallet.example\\@evil.example/'],
    ['with a character of another script', 'https://wället.example/'],
    ['that is relative', '/callback'],
    ['without a host', 'https://'],
    ['that is too long', `https://wallet.example/${'x'.repeat(2048)}`],
    ['with a user', 'https://shop@wallet.example/'],
    ['with a password alone', 'https://:secret@wallet.example/'],
    ['with a password in a private scheme', 'com.example.wallet://:secret@callback'],
    ['with a user in a private scheme', 'com.example.wallet://shop@callback'],
    ['of a server without TLS', 'http://wallet.example/'],
    ['of a host that begins like a loopback address', 'http://localhost.evil.example/'],
    ['whose host only browsers see', 'https:evil.example'],
    ['whose host is behind three slashes', 'https:///evil.example'],
    ['that browsers treat as loopback', 'http:localhost'],
    ['whose host is a number', 'https://0x7f.1/'],
    ['of another port than that of http', 'http://localhost:0443/'],
    ['whose port has a zero too many', 'https://wallet.example:00443/'],
    ['of a scheme without a dot', 'wallets://callback'],
    ['of the file scheme', 'file:///etc/passwd'],
    ['of a script scheme', 'javascript:alert(1)'],
    ['of a scheme that ends with a dot', 'com.:/callback'],
  ] as const) {
    it(`is rejected when the address is ${description}`, () => expect(isRedirectAddress(text), text).to.equal(false));
  }
});

const InvocationUri = PresentationConfigurationBody.shape.invocationUri;

/** Each row has a kind of address, its pattern in the API document, its schema and common examples. */
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
  ['a contact', CONTACT_PATTERN, ContactUri, ['mailto:help@acme.example', 'tel:+49-30-1234', 'https://acme.example/help']],
  ['a return address', RETURN_PATTERN, RedirectUri, ['https://shop.example/done?session={sessionId}', 'com.example.app:/done/{sessionId}']],
  [
    'a redirect address',
    REDIRECT_PATTERN,
    RedirectAddress,
    ['https://wallet.example/cb?a=b', 'com.example.wallet:/cb', 'openid4vp://', 'http://localhost:3000/cb'],
  ],
  [
    'the start of a wallet',
    INVOCATION_PATTERN,
    InvocationUri,
    ['openid4vp://', 'swiyu-verify://', 'https://wallet.example/present', 'com.example.wallet://', 'mine://'],
  ],
  ['an origin', ORIGIN_PATTERN, Origin, ['https://shop.example', 'http://localhost:3000', 'android:apk-key-hash:abc']],
];

/** Fragments that are combined at random. */
const PARTS = [
  ...['https://', 'HTTP://', 'http:', 'mailto:', 'tel:', 'data:image/png;base64,AAAA', 'com.example.app:', 'openid4vp://'],
  ...['localhost', 'my_backend', 'münchen.example', '127.0.0.1', '[::1]', ':8080', 'user:pw@', '/', '\\', '?', '#', ' '],
  ...['a', 'ä', '[x]', '{sessionId}', '|', '%zz', '\n', '\u0000', '*'],
];

describe('address patterns of the API document', () => {
  for (const [description, pattern, schema, examples] of KINDS) {
    it(`allow every ${description} that the service accepts`, () => {
      const parts = fc.constantFrom(...PARTS);
      const text = fc.oneof(
        fc.webUrl(),
        fc.array(parts, { maxLength: 8 }).map((pieces) => pieces.join('')),
      );
      fc.assert(
        fc.property(text, fc.string({ maxLength: 3 }), (start, end) => {
          const address = start + end;
          if (schema.safeParse(address).success) expect(address).to.match(new RegExp(pattern, 'u'));
        }),
        { numRuns: 2_000 },
      );
    });

    it(`allow ${description} in common notations`, () => {
      for (const text of examples) {
        expect(new RegExp(pattern, 'u').test(text), text).to.equal(true);
        expect(schema.safeParse(text).success, text).to.equal(true);
      }
    });
  }

  it('allow no scheme of a browser, a program or a protocol to start a wallet', () => {
    for (const scheme of ['http', 'javascript', 'data', 'file', 'blob', 'vbscript', 'intent', 'microsoft-edge']) {
      for (const text of [`${scheme}://`, `${scheme}://x/y`, `${scheme.toUpperCase()}://x`]) {
        expect(InvocationUri.safeParse(text).success, text).to.equal(false);
        expect(new RegExp(INVOCATION_PATTERN, 'u').test(text), text).to.equal(false);
      }
    }
    for (const text of ['chrome-extension://x', 'ms-settings://', 'search-ms://x', 'tel://1', 'ws://x', 'ftp://x'])
      expect(InvocationUri.safeParse(text).success, text).to.equal(false);
  });

  it('allow names of every kind, except those that a browser or program runs or opens', () => {
    for (const text of ['urn:eudi:pid:1', 'https://acme.example/type', 'did:web:acme.example', 'oid:1.2.3']) {
      expect([new RegExp(URI_PATTERN, 'u').test(text), HarmlessUri.safeParse(text).success], text).to.deep.equal([true, true]);
    }
    for (const text of ['javascript:alert(1)', ' data:text/html,x', 'File:///etc/passwd', 'a name']) {
      expect([new RegExp(URI_PATTERN, 'u').test(text), HarmlessUri.safeParse(text).success], text).to.deep.equal([false, false]);
    }
  });

  it('allow type names that are not addresses, except those that a browser or program runs or opens', () => {
    const isName = (text: string) => [new RegExp(NAME_PATTERN, 'u').test(text), NameUri.safeParse(text).success];
    for (const text of ['urn:eudi:pid:1', 'https://acme.example/type', 'student', 'org.acme.card', 'a/b?v=1#x']) {
      expect(isName(text), text).to.deep.equal([true, true]);
    }
    for (const text of ['Student card', 'a|b', 'karte-ä']) expect(isName(text), text).to.deep.equal([true, true]);
    for (const text of ['javascript:alert(1)', 'File:///etc/passwd', '']) {
      expect(isName(text), text).to.deep.equal([false, false]);
    }
  });
});
