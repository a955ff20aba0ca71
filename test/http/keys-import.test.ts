import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { writePemCertificates } from '../../domain/formats/der/pem.ts';
import { decode, issue, verifyWithLeaf } from '../support/present.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  keyChainId: 'brought',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
};

type Body = Record<string, unknown>;
/** What is brought, where the fault lies, and what is said of it. */
type Refused = [what: string, body: Body, path: string, message: RegExp];

const pkcs8 = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }) as string;
const sec1 = (key: KeyObject) => key.export({ format: 'pem', type: 'sec1' }) as string;
const jwk = (key: KeyObject) => key.export({ format: 'jwk' }) as Body;
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const locked = { cipher: 'aes-256-cbc', passphrase: 'secret', format: 'pem' } as const;

describe('key that was generated externally', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService();
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const call = (method: string, path: string, json?: unknown) =>
    service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  const bring = (body: Body) => call('POST', '/key-chain/import', { usageType: 'signing', ...body });
  const expectInvalid = (answer: Answer, path: string, message: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(message);
  };

  const p256 = ec('P-256');
  const accepted: [string, unknown, KeyObject, string][] = [
    ['PKCS#8', pkcs8(p256), p256, 'ES256'],
    ['SEC1', sec1(p256), p256, 'ES256'],
    [
      'SEC1 as OpenSSL writes it',
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${sec1(p256)}`,
      p256,
      'ES256',
    ],
    ['a JWK', jwk(p256), p256, 'ES256'],
    ['a JWK that says what it is for', { ...jwk(p256), alg: 'ES256', use: 'sig', kid: 'mine' }, p256, 'ES256'],
  ];
  const others: [string, KeyObject, string][] = [
    ['ES384', ec('P-384'), 'P-384'],
    ['ES512', ec('P-521'), 'P-521'],
    ['EdDSA', generateKeyPairSync('ed25519').privateKey, 'Ed25519'],
  ];
  for (const [alg, key] of others) {
    accepted.push([`PKCS#8 for ${alg}`, pkcs8(key), key, alg], [`a JWK for ${alg}`, jwk(key), key, alg]);
  }
  for (const [what, key, object, alg] of accepted) {
    it(`is imported as ${what} and certified by its own authority`, async () => {
      const answer = await bring({ key, subjectName: 'Brought' });
      expect(answer.status, answer.text).to.equal(201);
      const { d, ...publicHalf } = jwk(object);
      expect(answer.body.activeKey).to.include({ ...publicHalf, alg });
      expect(answer.text).to.not.include(String(d));
      const [leaf, root] = [answer.body.activeCertificate, answer.body.rootCertificate].map((text: string) => new X509Certificate(text));
      if (leaf === undefined || root === undefined) throw new Error('no certificates');
      expect(leaf.verify(root.publicKey) && leaf.checkIssued(root)).to.equal(true);
      expect(leaf.publicKey.export({ format: 'jwk' })).to.deep.include({ x: publicHalf['x'] });
      expect(leaf.subject).to.include('CN=Brought');
      const read = await call('GET', `/key-chain/${answer.body.id}`);
      expect(read.text).to.not.include(String(d));
    });
  }

  it('signs credentials with the imported certificates', async () => {
    const root = await certify({ name: 'Root', ca: true });
    const middle = await certify({ name: 'Middle', ca: true, by: root });
    const leaf = await certify({ name: 'Brought', by: middle });
    const answer = await bring({
      id: 'brought',
      description: 'From elsewhere',
      key: pkcs8(leaf.privateKey),
      certificates: [pem(leaf), pem(middle), pem(root)],
    });
    expect(answer.status, answer.text).to.equal(201);
    expect(answer.body).to.deep.include({ rootKey: null, rootCertificate: null, description: 'From elsewhere' });
    expect(answer.body.activeCertificate).to.equal(pem(leaf) + pem(middle));
    expect((await call('POST', '/issuer/credentials', CARD)).status).to.equal(201);
    const { text } = await issue(service, { id: 'acme', token }, 'card');
    const { header } = decode(text);
    expect(header['x5c']).to.deep.equal([leaf.certificate, middle.certificate]);
    expect(verifyWithLeaf(text.split('~')[0] ?? '').subject).to.equal('CN=Brought');
    expect((await bring({ id: 'brought', key: pkcs8(ec('P-256')) })).status, 'the id is taken').to.equal(409);
  });

  it('is certified by the authority of another key chain', async () => {
    const { rootCertificate } = (await call('GET', '/key-chain/signing')).body;
    const answer = await bring({ key: pkcs8(p256), rootKeyChainId: 'signing' });
    expect([answer.status, answer.body.rootCertificate]).to.deep.equal([201, rootCertificate]);
    expectInvalid(await bring({ key: pkcs8(p256), rootKeyChainId: 'nothing' }), 'rootKeyChainId', /nothing/);
    expectInvalid(await bring({ key: pkcs8(p256), rootKeyChainId: 'brought' }), 'rootKeyChainId', /internal/);
  });

  const bare = ec('P-256');
  const strangers = ['P-256', 'P-384', 'P-521', 'Ed25519'].map((curve) => {
    const fresh = () => jwk(curve === 'Ed25519' ? generateKeyPairSync('ed25519').privateKey : ec(curve));
    return [curve, fresh(), fresh()] as const;
  });
  const refused: Refused[] = [
    ['no key', {}, 'key', /./],
    ['an empty text', { key: '' }, 'key', /./],
    ['a number', { key: 7 }, 'key', /./],
    ['garbage', { key: 'garbage' }, 'key', /private key on P-256.* as PEM or JWK/],
    ['garbage in a block', { key: pkcs8(bare).replace(/\n[A-Za-z0-9+/=]{8}/, '\nAAAAAAAA') }, 'key', /malformed/],
    ['a public key', { key: 'PUBLIC' }, 'key', /public key/],
    ['an RSA key', { key: pkcs8(rsa) }, 'key', /not an RSA key/],
    ['an RSA key in PKCS#1', { key: rsa.export({ format: 'pem', type: 'pkcs1' }) }, 'key', /not an RSA key/],
    ['an RSA key as JWK', { key: jwk(rsa) }, 'key', /not an RSA key/],
    ['an encrypted key', { key: bare.export({ ...locked, type: 'pkcs8' }) }, 'key', /encrypted.*Decrypt/],
    ['an encrypted key in SEC1', { key: bare.export({ ...locked, type: 'sec1' }) }, 'key', /encrypted.*Decrypt/],
    ['a key on a weak curve', { key: pkcs8(ec('P-224')) }, 'key', /curve is not supported/],
    ['a key on a foreign curve', { key: pkcs8(ec('secp256k1')) }, 'key', /curve is not supported/],
    ['a JWK on a foreign curve', { key: jwk(ec('secp256k1')) }, 'key', /curve or its coordinates/],
    ['a key for agreement', { key: pkcs8(generateKeyPairSync('x25519').privateKey) }, 'key', /curve/],
    ['two keys', { key: pkcs8(bare) + pkcs8(bare) }, 'key', /only one key/],
    ['a key with its certificate', { key: `${pkcs8(bare)}CERTIFICATE` }, 'key', /only one key/],
    ['a certificate', { key: 'CERTIFICATE' }, 'key', /this is a certificate/],
    ['a JWK without its private half', { key: { ...jwk(bare), d: undefined } }, 'key', /without "d"/],
    ['a JWK with a private half that is too long', { key: { ...jwk(bare), d: 'x'.repeat(344) } }, 'key', /malformed/],
    ['a JWK with a broken private half', { key: { ...jwk(bare), d: 7 } }, 'key', /malformed/],
    ['a JWK of another type', { key: { kty: 'oct', k: 'c2VjcmV0' } }, 'key', /"kty"/],
    ['a JWK for encryption', { key: { ...jwk(bare), use: 'enc' } }, 'key', /"use"/],
    ['a JWK for another algorithm', { key: { ...jwk(bare), alg: 'ES384' } }, 'key', /"alg"/],
    ...strangers.map(
      ([curve, own, stranger]): Refused => [
        `a JWK whose halves are of two keys on ${curve}`,
        { key: { ...own, x: stranger['x'], y: stranger['y'] } },
        'key',
        /^The public key does not match the private key\.$/,
      ],
    ),
    ['a text without end', { key: 'A'.repeat(20_001) }, 'key', /./],
    ['two ways to say the usage', { key: pkcs8(bare), usages: ['access'] }, 'usageType', /either/],
    ['an unknown provider', { key: pkcs8(bare), kmsProvider: 'nowhere' }, 'kmsProvider', /"nowhere".*local/],
    ['an id that is an address', { key: pkcs8(bare), id: 'import' }, 'id', /address/],
    [
      'rotation that piles up keys',
      { key: pkcs8(bare), rotationEnabled: true, rotationIntervalDays: 1 },
      'rotationIntervalDays',
      /Rotate every 16 days or less often/,
    ],
  ];
  for (const [what, body, path, message] of refused) {
    it(`is rejected for ${what}, and nothing is stored`, async () => {
      const certificate = pem(await certify({ name: 'Any' }));
      const key =
        body['key'] === 'PUBLIC'
          ? '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n'
          : typeof body['key'] === 'string'
            ? body['key'].replace('CERTIFICATE', certificate)
            : body['key'];
      const before = (await call('GET', '/key-chain')).text;
      const answer = await bring({ ...body, key });
      expectInvalid(answer, path, message);
      const secret = typeof body['key'] === 'object' ? (body['key'] as Body)['d'] : undefined;
      if (typeof secret === 'string') expect(answer.text).to.not.include(secret);
      expect((await call('GET', '/key-chain')).text).to.equal(before);
    });
  }

  it('is rejected when it exceeds the size limit', async () => {
    const answer = await bring({ key: 'A'.repeat(70_000) });
    expect([answer.status, answer.body.code]).to.deep.equal([413, 'too_large']);
  });

  describe('with certificates', () => {
    let root: CertifiedKey;
    let leaf: CertifiedKey;
    const bringWith = async (certificates: unknown, changes: Body = {}) => bring({ key: pkcs8(leaf.privateKey), certificates, ...changes });

    before(async () => {
      root = await certify({ name: 'Root', ca: true });
      leaf = await certify({ name: 'Leaf', by: root });
    });

    const wrong: [string, () => Promise<unknown>, RegExp][] = [
      ['none', async () => [], /./],
      ['garbage', async () => 'garbage', /as PEM, leaf first/],
      ['an invalid one', async () => writePemCertificates(['MAA=']), /not a certificate/],
      ['a private key', async () => pkcs8(leaf.privateKey), /as PEM, leaf first/],
      ['those of another key', async () => pem(await certify({ name: 'Other', by: root })), /not for this key/],
      ['the root first', async () => pem(root) + pem(leaf), /not for this key/],
      [
        'an order that skips one',
        async () => {
          const middle = await certify({ name: 'Middle', ca: true, by: root });
          const below = await certify({ name: 'Leaf', by: middle, key: leaf });
          return pem(below) + pem(root) + pem(middle);
        },
        /not issued by the one after it/,
      ],
      [
        'an issuer of the same name with another key',
        async () => pem(leaf) + pem(await certify({ name: 'Root', ca: true })),
        /not issued by the one after it/,
      ],
      [
        'an issuer that is not an authority',
        async () => {
          const person = await certify({ name: 'Person', by: root });
          return pem(await certify({ name: 'Leaf', by: person, key: leaf })) + pem(person) + pem(root);
        },
        /not issued|not that of an authority/,
      ],
      [
        'one that has expired',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, until: '2026-01-01T00:00:00Z' })),
        /CN=Leaf is expired/,
      ],
      [
        'one that begins later',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, from: '2045-01-01T00:00:00Z' })),
        /CN=Leaf is expired or not valid yet/,
      ],
      [
        'an issuer that has expired',
        async () => {
          const old = await certify({ name: 'Old', ca: true, until: '2026-01-01T00:00:00Z' });
          return pem(await certify({ name: 'Leaf', by: old, key: leaf })) + pem(old);
        },
        /CN=Old is expired/,
      ],
      ['that of an authority', async () => pem(await certify({ name: 'Leaf', ca: true, by: root, key: leaf })), /that of an authority/],
      [
        'one that is not for signatures',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, signs: false })),
        /key usage .* does not allow signatures/,
      ],
      [
        'one for readers alone',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, purposes: ['1.0.18013.5.1.6'] })),
        /extended key usage .* than "signing"/,
      ],
      ['a self-signed one', async () => pem(await certify({ name: 'Leaf', key: leaf })), /self-signed/],
      ['seven of them', async () => Array.from({ length: 7 }, () => pem(leaf)), /./],
    ];
    for (const [what, make, message] of wrong) {
      it(`is rejected with ${what}`, async () => {
        const answer = await bringWith(await make());
        expectInvalid(answer, 'certificates', message);
      });
    }

    it('is imported with certificates for its usage and for unrelated usages', async () => {
      const forReaders = { name: 'Leaf', by: root, key: leaf, purposes: ['1.0.18013.5.1.6'] };
      const forWeb = { ...forReaders, purposes: ['1.3.6.1.5.5.7.3.1'] };
      const asReader = await bringWith(pem(await certify(forReaders)), { usageType: 'access' });
      expect(asReader.status, asReader.text).to.equal(201);
      expect((await bringWith(pem(await certify(forWeb)))).status).to.equal(201);
    });

    it('is rejected with certificates and an authority at the same time', async () => {
      expectInvalid(await bringWith(pem(leaf), { rootKeyChainId: 'signing' }), 'rootKeyChainId', /either/);
    });
  });
});
