import { expect } from 'chai';
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

describe('An address of the web', () => {
  const rows: [string, boolean][] = [
    ['https://shop.example/a?b=c', true],
    ['http://localhost:3000', true],
    ['ftp://shop.example', false],
    ['shop.example', false],
    ['https://', false],
    ['https://user@shop.example', false],
    ['https://:secret@shop.example', false],
  ];
  for (const [text, is] of rows) {
    it(`${text} is ${is ? 'one' : 'none'}`, () => expect(isWebAddress(text)).to.equal(is));
  }
});

describe('An address that is shown', () => {
  const long = 'x'.repeat(2048);
  const pixel = 'data:image/png;base64,iVBORw0KGgo=';
  const rows: [string, (text: string) => boolean, string[], string[]][] = [
    [
      'an image',
      (text) => ImageUri.safeParse(text).success,
      [
        'https://a.example/logo.png',
        pixel,
        `data:image/svg+xml;base64,${'A'.repeat(9_000)}`,
        'data:image/svg+xml;charset=utf-8,%3Csvg%3E',
      ],
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
      'where somebody can be reached',
      (text) => ContactUri.safeParse(text).success,
      ['https://a.example', 'http://a.example', 'mailto:a@a.example', 'tel:+491'],
      ['a@a.example', 'ftp://a.example', 'javascript:alert(1)', `https://a.example/${long}`],
    ],
    [
      'an issuer',
      (text) => IssuerAddress.safeParse(text).success,
      ['https://a.example', 'https://a.example/tenant/', 'https://a.example/{realm}', 'https://ä.example'],
      [
        'https://a.example?',
        'https://a.example/#',
        'https://u:p@a.example',
        'https://a.example/a\tb',
        'urn:a',
      ],
    ],
    [
      'a page',
      (text) => WebAddress.safeParse(text).success,
      [
        'https://a.example?b=c#d',
        'https://a.example/?f[x]=1',
        'http://my_backend:8080/{x}',
        'https://ä.example',
      ],
      ['urn:a', 'https://u:p@a.example/ä', 'https://a.example/\u0000', `https://a.example/${long}`],
    ],
    [
      'a harmless address',
      (text: string) => HarmlessUri.safeParse(text).success,
      ['urn:eudi:pid:1', 'https://a.example', 'tag:a'],
      [
        'no address',
        ' javascript:alert(1)',
        'JAVASCRIPT:x',
        'data:,x',
        'file:///etc',
        'view-source:https://a',
      ],
    ],
    [
      'a name',
      (text) => NameUri.safeParse(text).success,
      ['eu.europa.ec.eudi.pid.1', 'urn:eudi:pid:1', 'Student card', 'karte-ä', 'a|b'],
      [
        '',
        ' ',
        'a\nb',
        '1:2',
        'urn:karte:ä',
        ' javascript:alert(1)',
        'blob:https://a.example/1',
        'x'.repeat(2049),
      ],
    ],
  ];
  for (const [what, is, those, others] of rows) {
    for (const text of those) {
      it(`is ${what}: ${text.slice(0, 50)}`, () => expect(is(text)).to.equal(true));
    }
    for (const text of others) {
      it(`is not ${what}: "${text.slice(0, 50)}" (${text.length})`, () => expect(is(text)).to.equal(false));
    }
  }
});

describe('An issuer in other scripts', () => {
  it('is stored with an A-label, and is the same issuer however a server writes it', () => {
    expect(IssuerAddress.parse('https://münchen.example/realms/a')).to.equal(
      'https://xn--mnchen-3ya.example/realms/a',
    );
    expect(isSameIssuer('https://münchen.example', 'https://xn--mnchen-3ya.example')).to.equal(true);
    expect(isSameIssuer('https://as.example', 'https://as.example/')).to.equal(false);
    expect(isSameIssuer('https://as.example', 'https://AS.example')).to.equal(false);
  });
});
