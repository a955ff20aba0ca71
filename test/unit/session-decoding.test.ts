import { expect } from 'chai';
import { readCertificate } from '../../adapters/http/console/app/pages/sessions/certificate.ts';
import { queryInWords } from '../../adapters/http/console/app/pages/sessions/query-in-words.ts';
import { hostOfLink, mayBeReached } from '../../adapters/http/console/app/parts/public-address.ts';

describe('whether a phone reaches what a link leads to', () => {
  const offer = (address: string) =>
    `openid-credential-offer://?credential_offer_uri=${encodeURIComponent(`${address}/offer/1`)}`;
  const judged = (link: string) => {
    const address = hostOfLink(link);
    return address !== undefined && mayBeReached(address);
  };
  it('is judged by the address in the link', () => {
    expect(judged(offer('https://id.example'))).to.equal(true);
    expect(judged('openid4vp://?client_id=x&request_uri=https%3A%2F%2F203.0.113.7%2Fr')).to.equal(true);
    expect(judged(offer('https://[2001:db8::1]'))).to.equal(true);
    const inner = [
      'localhost',
      '127.0.0.1',
      '10.1.2.3',
      '172.20.0.1',
      '192.168.1.9',
      '100.64.0.1',
      '[::1]',
      '[fd00::1]',
    ];
    for (const host of inner) expect(judged(offer(`https://${host}:3000`)), host).to.equal(false);
    expect(judged(offer('http://id.example'))).to.equal(false);
    expect(judged('nonsense')).to.equal(false);
  });
});

describe('what the console decodes', () => {
  it('says a query in words', () => {
    const credentials = [
      {
        id: 'pid',
        format: 'dc+sd-jwt',
        meta: { vct_values: ['urn:a', 'urn:b'] },
        claims: [
          { path: ['family_name'] },
          { path: ['addresses', null, 'city'], values: ['Gent', 'Brugge'] },
          { path: ['degree'] },
        ],
      },
      { id: 'mdl', format: 'mso_mdoc', meta: { doctype_value: 'org.iso.18013.5.1.mDL' } },
    ];
    const credential_sets = [{ options: [['pid', 'mdl'], ['mdl']], required: false }];
    expect(queryInWords({ credentials, credential_sets })).to.deep.equal([
      'Asks for family name, addresses › each › city that is Gent or Brugge and degree of urn:a or urn:b (pid).',
      'Asks for no more than that it is held of org.iso.18013.5.1.mDL (mdl).',
      'Not required: pid and mdl, or mdl will do.',
    ]);
    for (const odd of [undefined, null, 'x', [], { credentials: 7 }])
      expect(queryInWords(odd)).to.deep.equal([]);
  });

  it('reads nothing out of what is no certificate', () => {
    const encoded = (...bytes: number[]) => Buffer.from(bytes).toString('base64');
    const odd = [
      undefined,
      7,
      '',
      '%',
      encoded(0x30),
      encoded(0x30, 0x80),
      encoded(0x30, 0x84, 255, 255, 255, 255),
    ];
    const long = 'A'.repeat(1_000_000);
    for (const text of [...odd, encoded(0x30, 0x02, 0x30, 0x00), long])
      expect(readCertificate(text), String(text).slice(0, 20)).to.equal(undefined);
  });
});
