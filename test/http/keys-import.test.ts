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
/** The body of an import, and the path and the message of the expected error. */
type RejectedImport = [description: string, body: Body, path: string, message: RegExp];

const pkcs8 = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }) as string;
const sec1 = (key: KeyObject) => key.export({ format: 'pem', type: 'sec1' }) as string;
const jwk = (key: KeyObject) => key.export({ format: 'jwk' }) as Body;
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve }).privateKey;
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
const encryption = { cipher: 'aes-256-cbc', passphrase: 'secret', format: 'pem' } as const;

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
  const importKey = (body: Body) => call('POST', '/key-chain/import', { usageType: 'signing', ...body });
  const expectInvalid = (answer: Answer, path: string, message: RegExp) => {
    expect([answer.status, answer.body.code], answer.text).to.deep.equal([400, 'invalid_input']);
    expect(answer.body.errors[0].path).to.equal(path);
    expect(answer.body.errors[0].message).to.match(message);
  };

  const p256 = ec('P-256');
  const acceptedKeys: [string, unknown, KeyObject, string][] = [
    ['PKCS#8', pkcs8(p256), p256, 'ES256'],
    ['SEC1', sec1(p256), p256, 'ES256'],
    [
      'SEC1 in the format of OpenSSL',
      `-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n${sec1(p256)}`,
      p256,
      'ES256',
    ],
    ['a JWK', jwk(p256), p256, 'ES256'],
    ['a JWK with alg, use and kid', { ...jwk(p256), alg: 'ES256', use: 'sig', kid: 'mine' }, p256, 'ES256'],
  ];
  const otherKeys: [string, KeyObject, string][] = [
    ['ES384', ec('P-384'), 'P-384'],
    ['ES512', ec('P-521'), 'P-521'],
    ['EdDSA', generateKeyPairSync('ed25519').privateKey, 'Ed25519'],
  ];
  for (const [alg, key] of otherKeys) {
    acceptedKeys.push([`PKCS#8 for ${alg}`, pkcs8(key), key, alg], [`a JWK for ${alg}`, jwk(key), key, alg]);
  }
  for (const [description, key, object, alg] of acceptedKeys) {
    it(`is imported as ${description} and certified by its own authority`, async () => {
      const answer = await importKey({ key, subjectName: 'Brought' });
      expect(answer.status, answer.text).to.equal(201);
      const { d, ...publicHalf } = jwk(object);
      expect(answer.body.activeKey).to.include({ ...publicHalf, alg });
      expect(answer.text).to.not.include(String(d));
      const [leaf, root] = [answer.body.activeCertificate, answer.body.rootCertificate].map((text: string) => new X509Certificate(text));
      if (leaf === undefined || root === undefined) throw new Error('no certificates');
      expect(leaf.verify(root.publicKey) && leaf.checkIssued(root)).to.equal(true);
      expect(leaf.publicKey.export({ format: 'jwk' })).to.deep.include({ x: publicHalf['x'] });
      expect(leaf.subject).to.include('CN=Brought');
      const storedChain = await call('GET', `/key-chain/${answer.body.id}`);
      expect(storedChain.text).to.not.include(String(d));
    });
  }

  it('signs credentials with the imported certificates', async () => {
    const root = await certify({ name: 'Root', ca: true });
    const intermediate = await certify({ name: 'Middle', ca: true, by: root });
    const leaf = await certify({ name: 'Brought', by: intermediate });
    const answer = await importKey({
      id: 'brought',
      description: 'From elsewhere',
      key: pkcs8(leaf.privateKey),
      certificates: [pem(leaf), pem(intermediate), pem(root)],
    });
    expect(answer.status, answer.text).to.equal(201);
    expect(answer.body).to.deep.include({ rootKey: null, rootCertificate: null, description: 'From elsewhere' });
    expect(answer.body.activeCertificate).to.equal(pem(leaf) + pem(intermediate));
    expect((await call('POST', '/issuer/credentials', CARD)).status).to.equal(201);
    const { text } = await issue(service, { id: 'acme', token }, 'card');
    const { header } = decode(text);
    expect(header['x5c']).to.deep.equal([leaf.certificate, intermediate.certificate]);
    expect(verifyWithLeaf(text.split('~')[0] ?? '').subject).to.equal('CN=Brought');
    expect((await importKey({ id: 'brought', key: pkcs8(ec('P-256')) })).status, 'the identifier exists').to.equal(409);
  });

  it('is certified by the authority of another key chain', async () => {
    const { rootCertificate } = (await call('GET', '/key-chain/signing')).body;
    const answer = await importKey({ key: pkcs8(p256), rootKeyChainId: 'signing' });
    expect([answer.status, answer.body.rootCertificate]).to.deep.equal([201, rootCertificate]);
    expectInvalid(await importKey({ key: pkcs8(p256), rootKeyChainId: 'nothing' }), 'rootKeyChainId', /nothing/);
    expectInvalid(await importKey({ key: pkcs8(p256), rootKeyChainId: 'brought' }), 'rootKeyChainId', /internal/);
  });

  const keyWithoutCertificate = ec('P-256');
  const mismatchedKeys = ['P-256', 'P-384', 'P-521', 'Ed25519'].map((curve) => {
    const createJwk = () => jwk(curve === 'Ed25519' ? generateKeyPairSync('ed25519').privateKey : ec(curve));
    return [curve, createJwk(), createJwk()] as const;
  });
  const rejectedImports: RejectedImport[] = [
    ['no key', {}, 'key', /./],
    ['an empty text', { key: '' }, 'key', /./],
    ['a number', { key: 7 }, 'key', /./],
    ['garbage', { key: 'garbage' }, 'key', /private key on P-256.* as PEM or JWK/],
    ['garbage in a block', { key: pkcs8(keyWithoutCertificate).replace(/\n[A-Za-z0-9+/=]{8}/, '\nAAAAAAAA') }, 'key', /malformed/],
    ['a public key', { key: 'PUBLIC' }, 'key', /public key/],
    ['an RSA key', { key: pkcs8(rsa) }, 'key', /not an RSA key/],
    ['an RSA key in PKCS#1', { key: rsa.export({ format: 'pem', type: 'pkcs1' }) }, 'key', /not an RSA key/],
    ['an RSA key as JWK', { key: jwk(rsa) }, 'key', /not an RSA key/],
    ['an encrypted key', { key: keyWithoutCertificate.export({ ...encryption, type: 'pkcs8' }) }, 'key', /encrypted.*Decrypt/],
    ['an encrypted key in SEC1', { key: keyWithoutCertificate.export({ ...encryption, type: 'sec1' }) }, 'key', /encrypted.*Decrypt/],
    ['a key on a weak curve', { key: pkcs8(ec('P-224')) }, 'key', /curve is not supported/],
    ['a key on a foreign curve', { key: pkcs8(ec('secp256k1')) }, 'key', /curve is not supported/],
    ['a JWK on a foreign curve', { key: jwk(ec('secp256k1')) }, 'key', /curve or its coordinates/],
    ['a key for agreement', { key: pkcs8(generateKeyPairSync('x25519').privateKey) }, 'key', /curve/],
    ['two keys', { key: pkcs8(keyWithoutCertificate) + pkcs8(keyWithoutCertificate) }, 'key', /only one key/],
    ['a key with its certificate', { key: `${pkcs8(keyWithoutCertificate)}CERTIFICATE` }, 'key', /only one key/],
    ['a certificate', { key: 'CERTIFICATE' }, 'key', /this is a certificate/],
    ['a JWK without its private half', { key: { ...jwk(keyWithoutCertificate), d: undefined } }, 'key', /without "d"/],
    ['a JWK with a private half that is too long', { key: { ...jwk(keyWithoutCertificate), d: 'x'.repeat(344) } }, 'key', /malformed/],
    ['a JWK with a broken private half', { key: { ...jwk(keyWithoutCertificate), d: 7 } }, 'key', /malformed/],
    ['a JWK of another type', { key: { kty: 'oct', k: 'c2VjcmV0' } }, 'key', /"kty"/],
    ['a JWK for encryption', { key: { ...jwk(keyWithoutCertificate), use: 'enc' } }, 'key', /"use"/],
    ['a JWK for another algorithm', { key: { ...jwk(keyWithoutCertificate), alg: 'ES384' } }, 'key', /"alg"/],
    ...mismatchedKeys.map(
      ([curve, ownJwk, otherJwk]): RejectedImport => [
        `a JWK whose halves are of two keys on ${curve}`,
        { key: { ...ownJwk, x: otherJwk['x'], y: otherJwk['y'] } },
        'key',
        /^The public key does not match the private key\.$/,
      ],
    ),
    ['a text that is too long', { key: 'A'.repeat(20_001) }, 'key', /./],
    ['both usageType and usages', { key: pkcs8(keyWithoutCertificate), usages: ['access'] }, 'usageType', /either/],
    ['an unknown provider', { key: pkcs8(keyWithoutCertificate), kmsProvider: 'nowhere' }, 'kmsProvider', /"nowhere".*local/],
    ['an id that is an address', { key: pkcs8(keyWithoutCertificate), id: 'import' }, 'id', /address/],
    [
      'a rotation that would keep too many keys',
      { key: pkcs8(keyWithoutCertificate), rotationEnabled: true, rotationIntervalDays: 1 },
      'rotationIntervalDays',
      /Rotate every 16 days or less often/,
    ],
  ];
  for (const [description, body, path, message] of rejectedImports) {
    it(`is rejected for ${description}, and nothing is stored`, async () => {
      const certificate = pem(await certify({ name: 'Any' }));
      const key =
        body['key'] === 'PUBLIC'
          ? '-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n'
          : typeof body['key'] === 'string'
            ? body['key'].replace('CERTIFICATE', certificate)
            : body['key'];
      const before = (await call('GET', '/key-chain')).text;
      const answer = await importKey({ ...body, key });
      expectInvalid(answer, path, message);
      const secret = typeof body['key'] === 'object' ? (body['key'] as Body)['d'] : undefined;
      if (typeof secret === 'string') expect(answer.text).to.not.include(secret);
      expect((await call('GET', '/key-chain')).text).to.equal(before);
    });
  }

  it('is rejected when it exceeds the size limit', async () => {
    const answer = await importKey({ key: 'A'.repeat(70_000) });
    expect([answer.status, answer.body.code]).to.deep.equal([413, 'too_large']);
  });

  describe('with certificates', () => {
    let root: CertifiedKey;
    let leaf: CertifiedKey;
    const importWithCertificates = async (certificates: unknown, changes: Body = {}) =>
      importKey({ key: pkcs8(leaf.privateKey), certificates, ...changes });

    before(async () => {
      root = await certify({ name: 'Root', ca: true });
      leaf = await certify({ name: 'Leaf', by: root });
    });

    const invalidCertificates: [string, () => Promise<unknown>, RegExp][] = [
      ['none', async () => [], /./],
      ['garbage', async () => 'garbage', /as PEM, leaf first/],
      ['an invalid certificate', async () => writePemCertificates(['MAA=']), /not a certificate/],
      ['a private key', async () => pkcs8(leaf.privateKey), /as PEM, leaf first/],
      ['the certificate of another key', async () => pem(await certify({ name: 'Other', by: root })), /not for this key/],
      ['the root as the first certificate', async () => pem(root) + pem(leaf), /not for this key/],
      [
        'a missing intermediate',
        async () => {
          const intermediate = await certify({ name: 'Middle', ca: true, by: root });
          const leafBelow = await certify({ name: 'Leaf', by: intermediate, key: leaf });
          return pem(leafBelow) + pem(root) + pem(intermediate);
        },
        /not issued by the one after it/,
      ],
      [
        'an issuer of the same name with another key',
        async () => pem(leaf) + pem(await certify({ name: 'Root', ca: true })),
        /not issued by the one after it/,
      ],
      [
        'an issuer that is not a CA',
        async () => {
          const person = await certify({ name: 'Person', by: root });
          return pem(await certify({ name: 'Leaf', by: person, key: leaf })) + pem(person) + pem(root);
        },
        /not issued|not that of an authority/,
      ],
      [
        'an expired certificate',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, until: '2026-01-01T00:00:00Z' })),
        /CN=Leaf is expired/,
      ],
      [
        'a certificate that is not valid yet',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, from: '2045-01-01T00:00:00Z' })),
        /CN=Leaf is expired or not valid yet/,
      ],
      [
        'an expired issuer',
        async () => {
          const expiredRoot = await certify({ name: 'Old', ca: true, until: '2026-01-01T00:00:00Z' });
          return pem(await certify({ name: 'Leaf', by: expiredRoot, key: leaf })) + pem(expiredRoot);
        },
        /CN=Old is expired/,
      ],
      ['a CA certificate', async () => pem(await certify({ name: 'Leaf', ca: true, by: root, key: leaf })), /that of an authority/],
      [
        'a certificate that does not allow signatures',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, signs: false })),
        /key usage .* does not allow signatures/,
      ],
      [
        'a certificate for readers only',
        async () => pem(await certify({ name: 'Leaf', by: root, key: leaf, purposes: ['1.0.18013.5.1.6'] })),
        /extended key usage .* than "signing"/,
      ],
      ['a self-signed certificate', async () => pem(await certify({ name: 'Leaf', key: leaf })), /self-signed/],
      ['seven certificates', async () => Array.from({ length: 7 }, () => pem(leaf)), /./],
    ];
    for (const [description, make, message] of invalidCertificates) {
      it(`is rejected with ${description}`, async () => {
        const answer = await importWithCertificates(await make());
        expectInvalid(answer, 'certificates', message);
      });
    }

    it('is imported with certificates for its usage and for unrelated usages', async () => {
      const forReaders = { name: 'Leaf', by: root, key: leaf, purposes: ['1.0.18013.5.1.6'] };
      const forWeb = { ...forReaders, purposes: ['1.3.6.1.5.5.7.3.1'] };
      const asReader = await importWithCertificates(pem(await certify(forReaders)), { usageType: 'access' });
      expect(asReader.status, asReader.text).to.equal(201);
      expect((await importWithCertificates(pem(await certify(forWeb)))).status).to.equal(201);
    });

    it('is rejected with certificates and an authority at the same time', async () => {
      expectInvalid(await importWithCertificates(pem(leaf), { rootKeyChainId: 'signing' }), 'rootKeyChainId', /either/);
    });
  });
});
