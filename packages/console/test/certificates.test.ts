import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { type CertifiedKey, certify, pem } from '../../../test/support/test-certificates.ts';
import { nameOf, newAmong } from '../src/pages/trust/anchors.ts';
import { issuing } from '../src/pages/trust/key-chain.ts';
import {
  type CertificatePurpose,
  derOfPem,
  MAX_FILE_BYTES,
  pemOf,
  type Reading,
  readCertificates,
} from '../src/pages/trust/read-certificates.ts';
import { readForm } from '../src/pages/trust/read-form.ts';

describe('A trusted certificate of the console', () => {
  it('has a readable name, whatever was typed', async () => {
    const ca = await certify({ name: 'CA', ca: true });
    expect(nameOf({ certificate: pem(ca) })).to.match(/^a certificate of CN=CA, until /);
    expect(nameOf({ certificate: 'no certificate' })).to.equal('a certificate that ends with ocertificate');
    expect(nameOf({ keyChainId: 'signing' })).to.equal('the key chain signing');
    expect(nameOf({ trustList: 'https://a.example' })).to.equal('the trust list https://a.example');
    expect(nameOf({ trustList: '' })).to.equal('the trust list without an address');
    expect(nameOf({ ownAuthorities: true })).to.equal('all own key chains that issue');
    for (const odd of [null, 5, 'text', [], {}, { certificate: 7 }, { trustList: {} }]) expect(nameOf(odd)).to.be.a('string');
  });

  it('is added once, however its certificate is broken into lines', async () => {
    const certificate = pem(await certify({ name: 'CA', ca: true }));
    const other = pem(await certify({ name: 'Other', ca: true }));
    const before = [{ certificate, pin: true }, { keyChainId: 'a' }];
    const added = [
      { certificate: certificate.replaceAll('\n', '\r\n') },
      { certificate: other },
      { certificate: other },
      { keyChainId: 'a' },
      { trustList: 'https://a.example', follow: {} },
      { trustList: 'https://a.example' },
    ];
    expect(newAmong(before, added)).to.deep.equal([added[1], added[4]]);
  });

  it('is of a tenant what issues under an authority of its own', () => {
    const chains = [
      { id: 'a', usages: ['signing'], rootCertificate: 'PEM' },
      { id: 'b', usages: ['access'], rootCertificate: 'PEM' },
      { id: 'c', usages: ['signing'], rootCertificate: null },
      { id: 'd', rootCertificate: 'PEM' },
    ];
    expect(issuing(chains).map(({ id }) => id)).to.deep.equal(['a']);
  });
});

const NOW = new Date();
const key = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

describe('Certificates that are given to the console', () => {
  let ca: CertifiedKey;
  let other: CertifiedKey;
  let signer: CertifiedKey;
  let ended: CertifiedKey;

  before(async () => {
    ca = await certify({ name: 'First CA', ca: true });
    other = await certify({ name: 'Second CA', ca: true });
    signer = await certify({ name: 'Signer', by: ca });
    ended = await certify({ name: 'Ended CA', ca: true, from: '2024-01-01', until: '2025-01-01' });
  });

  const read = (content: string | Uint8Array, purpose: CertificatePurpose = 'authority'): Reading =>
    readCertificates(typeof content === 'string' ? Buffer.from(content) : content, 'a.pem', purpose, NOW);
  const der = ({ certificate }: CertifiedKey) => Buffer.from(certificate, 'base64');

  it('are read from PEM with several certificates, and from DER, each once', () => {
    const { found, refused } = read(`first\r\n${pem(ca)}and\n${pem(other)}${pem(ca)}`);
    expect(refused).to.deep.equal([]);
    expect(found.map(({ subject }) => subject)).to.deep.equal(['CN=First CA', 'CN=Second CA']);
    for (const form of [der(ca), ca.certificate, der(ca).toString('hex')])
      expect(read(form).found.map(({ subject }) => subject)).to.deep.equal(['CN=First CA']);
  });

  it('are written as others read them', () => {
    const written = read(der(ca)).found[0]?.pem ?? '';
    expect(new X509Certificate(written).subject).to.equal('CN=First CA');
    expect(Buffer.from(derOfPem(written) ?? []).equals(der(ca))).to.equal(true);
    expect(pemOf(der(ca))).to.equal(written);
    expect(derOfPem('none')).to.equal(undefined);
  });

  it('are rejected together with a private key in any form', () => {
    const secret = key();
    const jwk = JSON.stringify(secret.export({ format: 'jwk' }));
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const forms = [
      pem(ca) + secret.export({ format: 'pem', type: 'pkcs8' }),
      `${secret.export({ format: 'pem', type: 'sec1' })}${pem(ca)}`,
      secret.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }),
      rsa.export({ format: 'pem', type: 'pkcs1' }),
      jwk,
      secret.export({ format: 'der', type: 'pkcs8' }),
      secret.export({ format: 'der', type: 'sec1' }),
      rsa.export({ format: 'der', type: 'pkcs1' }),
      secret.export({ format: 'der', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' }),
      secret.export({ format: 'der', type: 'pkcs8' }).subarray(0, 40),
      // PKCS #12, with and without its length
      Buffer.from('30050201033000', 'hex'),
      Buffer.from('3080020103308006092a864886f70d010701', 'hex'),
    ];
    for (const form of forms) {
      const { found, refused, hasKey } = read(form as string);
      expect(hasKey).to.equal(true);
      expect(found, String(form).slice(0, 40)).to.deep.equal([]);
      expect(refused).to.have.length(1);
      expect(refused[0]).to.match(/^a\.pem holds a private key\. Nothing of it was taken/);
      expect(refused[0]).to.not.include(jwk);
    }
  });

  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const refusals: [string, () => string | Uint8Array, RegExp][] = [
    ['words', () => 'not a certificate', /is no certificate/],
    ['nothing', () => '', /is no certificate/],
    ['a public key', () => publicKey.export({ format: 'pem', type: 'spki' }) as string, /is no certificate/],
    ['half of one', () => der(ca).subarray(0, 100), /is no certificate/],
    ['one and a bit', () => Buffer.concat([der(ca), Buffer.from([1])]), /is no certificate/],
    ['a bundle', () => Buffer.from('300d06092a864886f70d010702a000', 'hex'), /bundle \(PKCS #7\)/],
    ['what has ended', () => pem(ended), /“CN=Ended CA” ended on /],
    ['no authority', () => pem(signer), /“CN=Signer” is no authority/],
    ['what is too big', () => Buffer.alloc(MAX_FILE_BYTES + 1, 48), /more than 256 KiB/],
    ['too many', () => pem(ca).repeat(201), /more than 200 certificates/],
  ];
  for (const [what, make, sentence] of refusals)
    it(`are not read from ${what}`, () => {
      const { found, refused } = read(make());
      expect(found).to.deep.equal([]);
      expect(refused).to.have.length(1);
      expect(refused[0]).to.match(sentence);
    });

  it('are accepted beside a rejected one, which is named', () => {
    const { found, refused } = read(pem(ca) + pem(signer) + pem(ended));
    expect(found.map(({ subject }) => subject)).to.deep.equal(['CN=First CA']);
    expect(refused).to.have.length(2);
  });

  it('may be of an issuer or the signer of a list, if that is the purpose', () => {
    for (const wanted of ['issuer', 'signer'] as const) expect(read(pem(signer), wanted).found).to.have.length(1);
    expect(read(pem(ended), 'signer').found).to.deep.equal([]);
  });

  it('come from the files and the text of a form, each judged by itself', async () => {
    const form = new FormData();
    form.append('file', new File([der(ca)], 'ca.der'));
    form.append('file', new File([String(key().export({ format: 'pem', type: 'pkcs8' }))], 'key.pem'));
    form.append('text', pem(other));
    const { found, refused } = await readForm(form, 'authority');
    expect(found.map(({ subject }) => subject)).to.deep.equal(['CN=First CA', 'CN=Second CA']);
    expect(refused).to.have.length(1);
    expect(refused[0]).to.match(/^key\.pem holds a private key/);
    expect((await readForm(new FormData(), 'authority')).refused[0]).to.match(/^Choose a file/);
    for (let count = 0; count < 20; count++) form.append('file', new File(['x'], 'x'));
    expect((await readForm(form, 'authority')).found).to.deep.equal([]);
  });
});
