import { expect } from 'chai';
import {
  ContactUri,
  HarmlessUri,
  ImageUri,
  IssuerAddress,
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
        `https://a.example/${long}`,
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
      ['https://a.example', 'https://a.example/tenant/'],
      ['https://a.example?', 'https://a.example/#', 'https://a.example\\b', 'https://a.example/a b', 'urn:a'],
    ],
    [
      'a page',
      (text) => WebAddress.safeParse(text).success,
      ['https://a.example?b=c#d'],
      ['urn:a', `https://a.example/${long}`],
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
      ['eu.europa.ec.eudi.pid.1', 'urn:eudi:pid:1'],
      ['', ' javascript:alert(1)', 'blob:https://a.example/1', 'x'.repeat(2049)],
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
