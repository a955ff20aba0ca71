import { expect } from 'chai';
import fc from 'fast-check';
import { escapedUri, isUri, isUriReference, normalUri } from '../../../domain/shared/uri.ts';

describe('A URI', () => {
  const URIS = [
    'https://acme.example/a%7Cb?c=d&e[]#f'.replace('[]', '%5B%5D'),
    'http://[::1]:80/x',
    'https://user@[2001:db8::1]/',
    'urn:eudi:pid:1',
    'com.example.app:/done',
    'mailto:a@b.example',
    'https://a.example/?q=(1)!*',
  ];
  for (const uri of URIS) it(`is ${uri}`, () => expect(isUri(uri)).to.equal(true));

  const OTHERS = [
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
  for (const text of OTHERS) it(`is not ${JSON.stringify(text)}`, () => expect(isUri(text)).to.equal(false));

  it('may be relative as the name of a type, unless its first part has a colon', () => {
    for (const name of ['student', 'org.acme.card', 'a/b:c', './a:b', 'urn:x']) {
      expect(isUriReference(name), name).to.equal(true);
    }
    for (const name of ['', 'Student card', '1:2', 'a|b', 'urn:', 'karte-ä', 'a\tb']) {
      expect(isUriReference(name), name).to.equal(false);
    }
  });
});

describe('The normal form of an address', () => {
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
  for (const [text, normal] of rows) {
    it(`of ${JSON.stringify(text)} is ${normal}`, () => expect(normalUri(text)).to.equal(normal));
  }

  it('does not exist for texts with control characters inside and for texts that are no address', () => {
    for (const same of ['https://acme.example/\nä', 'java\nscript:ä', 'student card', '/ä', 'https://']) {
      expect(normalUri(same)).to.equal(same);
    }
  });

  it('is a URI with the same host, and its own normal form', () => {
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), fc.string(), (url, more) => {
        const text = `${url}/${more}`;
        const normal = normalUri(text);
        fc.pre(normal !== text || isUri(text));
        expect(isUri(normal), normal).to.equal(true);
        expect(normalUri(normal)).to.equal(normal);
        expect(new URL(normal).host).to.equal(new URL(text).host);
      }),
    );
  });

  it('of what an earlier release took is a URI, whatever stood in it', () => {
    expect(escapedUri('https://shop.example/a|b?c=[d]#e|f')).to.equal(
      'https://shop.example/a%7Cb?c=%5Bd%5D#e%7Cf',
    );
    expect(escapedUri('com.example.app:/done?x={y}%')).to.equal('com.example.app:/done?x=%7By%7D%25');
    fc.assert(
      fc.property(fc.webUrl({ withFragments: true, withQueryParameters: true }), fc.string(), (url, more) => {
        const { href } = new URL(`${url}/${more}`);
        expect(isUri(escapedUri(href)), href).to.equal(true);
        expect(new URL(escapedUri(href)).host).to.equal(new URL(href).host);
      }),
    );
  });
});
