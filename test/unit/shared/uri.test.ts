import { expect } from 'chai';
import fc from 'fast-check';
import { escapedUri, isUri, isUriReference, normalWebAddress } from '../../../domain/shared/uri.ts';

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
  it('is what it is where that is a URI, and encodes what browsers encode', () => {
    for (const same of ['https://acme.example', 'https://ACME.example/x?', 'urn:a', 'com.example.app:/ä']) {
      expect(normalWebAddress(same)).to.equal(same);
    }
    expect(normalWebAddress('https://acme.example/logo für alle.png')).to.equal(
      'https://acme.example/logo%20f%C3%BCr%20alle.png',
    );
    expect(normalWebAddress('https://müller.example/x')).to.equal('https://xn--mller-kva.example/x');
  });

  it('is not made of what browsers read as another address', () => {
    for (const same of [
      'https:acme.example/ä',
      'https://acme.example\\@evil.example/ä',
      'https://acme.example/\nä',
      '\thttps://acme.example/ä',
      'https://acme.example/ä ',
      'java\nscript:ä',
    ]) {
      expect(normalWebAddress(same)).to.equal(same);
    }
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
