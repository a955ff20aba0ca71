// Independent libraries that verify credentials of the service, installed apart from it (`npm ci` in this folder), and run
// by tests as a process of their own: one JSON array of a function's name and its arguments comes in, one JSON object with
// a result or an error goes out. Each reader is loaded alone, since both teach one CBOR library their own classes.
import { createHash, createPublicKey, createVerify, randomBytes, verify, X509Certificate } from 'node:crypto';

/** SD-JWT and mdoc name them alike but for the case. */
const HASHES = { 'SHA-256': 'sha256', 'SHA-384': 'sha384', 'SHA-512': 'sha512' };

function digest(data, algorithm) {
  const hash = HASHES[algorithm] ?? HASHES[algorithm.toUpperCase()];
  if (hash === undefined) throw new Error(`no hash ${algorithm}`);
  return new Uint8Array(createHash(hash).update(data).digest());
}

/** The context of @owf/mdoc, implemented with node:crypto. */
const mdocContext = (CoseKey) => ({
  crypto: {
    random: (length) => new Uint8Array(randomBytes(length)),
    digest: ({ digestAlgorithm, bytes }) => digest(bytes, digestAlgorithm),
    calculateEphemeralMacKey: () => {
      throw new Error('no MAC is expected');
    },
  },
  cose: {
    sign1: {
      sign: () => {
        throw new Error('an oracle signs nothing');
      },
      verify: ({ key, sign1 }) =>
        verify(
          'sha256',
          sign1.toBeSigned,
          { key: createPublicKey({ key: key.jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' },
          sign1.signature,
        ),
    },
    mac0: { sign: () => undefined, verify: () => false },
  },
  x509: {
    getIssuerNameField: ({ certificate, field }) => fieldsOf(new X509Certificate(certificate).issuer, field),
    getPublicKey: ({ certificate }) => CoseKey.fromJwk(new X509Certificate(certificate).publicKey.export({ format: 'jwk' })),
    verifyCertificateChain: ({ trustedCertificates, x5chain }) => {
      const chain = x5chain.map((der) => new X509Certificate(der));
      const anchors = trustedCertificates.map((der) => new X509Certificate(der));
      chain.forEach((certificate, index) => {
        const next = chain[index + 1];
        const issuers = next === undefined ? anchors : [next];
        if (!issuers.some((issuer) => certificate.verify(issuer.publicKey))) throw new Error('no path');
      });
      return { chain: x5chain };
    },
    getCertificateData: ({ certificate }) => {
      const read = new X509Certificate(certificate);
      return {
        issuerName: read.issuer,
        subjectName: read.subject,
        serialNumber: read.serialNumber,
        thumbprint: read.fingerprint256,
        notBefore: new Date(read.validFrom),
        notAfter: new Date(read.validTo),
        pem: read.toString(),
      };
    },
  },
});

const fieldsOf = (name, field) =>
  name
    .split('\n')
    .filter((line) => line.startsWith(`${field}=`))
    .map((line) => line.slice(field.length + 1));

/**
 * Reads and verifies an issued mdoc.
 * @param {string} text base64url of IssuerSigned
 * @param {string[]} anchors DER in base64
 * @returns the elements by namespace, and the device key's x coordinate
 */
async function readMdoc(text, anchors) {
  const { CoseKey, IssuerSigned } = await import('@owf/mdoc');
  const issued = IssuerSigned.fromEncodedForOid4Vci(text);
  const checks = [];
  await issued.verify(
    {
      trustedCertificates: anchors.map((anchor) => new Uint8Array(Buffer.from(anchor, 'base64'))),
      verificationCallback: (check) => checks.push(check),
    },
    mdocContext(CoseKey),
  );
  const failed = checks.filter(({ status }) => status === 'FAILED');
  if (failed.length > 0) throw new Error(failed.map(({ check, reason }) => reason ?? check).join('; '));
  const { mobileSecurityObject } = issued.issuerAuth;
  const elements = {};
  for (const namespace of issued.issuerNamespaces.issuerNamespaces.keys()) {
    elements[namespace] = issued.getPrettyClaims(namespace);
  }
  return {
    docType: mobileSecurityObject.docType,
    elements,
    deviceKey: mobileSecurityObject.deviceKeyInfo.deviceKey.jwk,
    checks: checks.length,
  };
}

/**
 * Reads and verifies an issued SD-JWT VC, and asks for its status.
 * @param {string} text compact
 * @param {string} anchor DER in base64
 * @returns the disclosed payload
 */
async function readSdJwtVc(text, anchor) {
  const { SDJwtVcInstance } = await import('@sd-jwt/sd-jwt-vc');
  const header = JSON.parse(Buffer.from(text.split('.')[0], 'base64url').toString());
  const leaf = new X509Certificate(Buffer.from(header.x5c[0], 'base64'));
  if (!leaf.verify(new X509Certificate(Buffer.from(anchor, 'base64')).publicKey)) throw new Error('no path');
  const instance = new SDJwtVcInstance({
    hasher: (data, algorithm) => digest(data, algorithm),
    hashAlg: 'sha-256',
    verifier: (data, signature) =>
      createVerify('sha256').update(data).verify({ key: leaf.publicKey, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url')),
    loadTypeMetadataFormat: false,
    statusVerifier: () => true,
    statusListFetcher: async (uri) => {
      const answer = await fetch(uri, { headers: { Accept: 'application/statuslist+jwt' } });
      return answer.text();
    },
  });
  return (await instance.verify(text)).payload;
}

/** Every answer is what the reader made of a text, or why it made nothing of it. */
async function judgeAll(texts, judge) {
  const verdicts = [];
  for (const text of texts) {
    try {
      verdicts.push({ claims: await judge(text) });
    } catch (error) {
      verdicts.push({ refused: String(error?.message ?? error).slice(0, 200) });
    }
  }
  return verdicts;
}

/** A chain, leaf first, that ends under one of the anchors and is valid at `now`. @returns the leaf */
function verifiedLeaf(chain, anchors, now) {
  const certificates = chain.map((der) => new X509Certificate(der));
  certificates.forEach((certificate, index) => {
    const issuers = index + 1 < certificates.length ? [certificates[index + 1]] : anchors;
    if (!issuers.some((issuer) => certificate.verify(issuer.publicKey))) throw new Error('no path');
    if (new Date(certificate.validFrom) > now || new Date(certificate.validTo) < now) throw new Error('expired');
  });
  if (certificates.length === 0) throw new Error('no certificate');
  return certificates[0];
}

const certificateOf = (text) => new X509Certificate(Buffer.from(text, 'base64'));
const verifies = (data, signature, key) =>
  createVerify('sha256').update(data).verify({ key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'));

/**
 * Verifies presentations of SD-JWT VCs with their key binding and their status.
 * @param {string[]} texts
 * @param {{anchors: string[], nonce: string, seconds: number, lists: Record<string, string>}} expected status list
 *   tokens by address
 */
async function judgeSdJwtVcs(texts, { anchors, nonce, seconds, lists }) {
  const { SDJwtVcInstance } = await import('@sd-jwt/sd-jwt-vc');
  const roots = anchors.map(certificateOf);
  return judgeAll(texts, async (text) => {
    const header = JSON.parse(Buffer.from(text.split('.')[0], 'base64url').toString());
    const chain = header.x5c.map((one) => Buffer.from(one, 'base64'));
    const leaf = verifiedLeaf(chain, roots, new Date(seconds * 1000));
    const instance = new SDJwtVcInstance({
      hasher: (data, algorithm) => digest(data, algorithm),
      hashAlg: 'sha-256',
      verifier: (data, signature) => verifies(data, signature, leaf.publicKey),
      kbVerifier: (data, signature, { cnf }) => verifies(data, signature, createPublicKey({ key: cnf.jwk, format: 'jwk' })),
      loadTypeMetadataFormat: false,
      statusVerifier: () => true,
      statusListFetcher: async (uri) => lists[uri] ?? Promise.reject(new Error('no list')),
    });
    const options = { keyBindingNonce: nonce, currentDate: seconds, skewSeconds: 60 };
    return (await instance.verify(text, options)).payload;
  });
}

/**
 * Verifies DeviceResponses.
 * @param {string[]} texts
 * @param {{anchors: string[], transcript: string, seconds: number}} expected the SessionTranscript in base64url
 */
async function judgeMdocs(texts, { anchors, transcript, seconds }) {
  const { CoseKey, DeviceResponse } = await import('@owf/mdoc');
  const now = new Date(seconds * 1000);
  const context = mdocContext(CoseKey);
  context.x509.verifyCertificateChain = ({ x5chain }) => {
    verifiedLeaf(x5chain, anchors.map(certificateOf), now);
    return { chain: x5chain };
  };
  return judgeAll(texts, async (text) => {
    const response = DeviceResponse.fromEncodedForOid4Vp(text);
    await response.verify(
      {
        sessionTranscript: new Uint8Array(Buffer.from(transcript, 'base64url')),
        trustedCertificates: anchors.map((anchor) => new Uint8Array(Buffer.from(anchor, 'base64'))),
        now,
        skewSeconds: 60,
      },
      context,
    );
    const [document] = response.documents ?? [];
    const elements = {};
    for (const namespace of document.issuerSigned.issuerNamespaces.issuerNamespaces.keys()) {
      elements[namespace] = document.issuerSigned.getPrettyClaims(namespace);
    }
    return elements;
  });
}

/** Bytes as base64url and dates as text, since the result is JSON. */
const plain = (_name, value) =>
  value instanceof Uint8Array || value?.type === 'Buffer' ? Buffer.from(value.data ?? value).toString('base64url') : value;

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const [name, ...parameters] = JSON.parse(Buffer.concat(chunks).toString());
const result = await { readMdoc, readSdJwtVc, judgeMdocs, judgeSdJwtVcs }
  [name](...parameters)
  .then((value) => ({ value }))
  .catch((error) => ({ error: String(error?.message ?? error) }));
process.stdout.write(JSON.stringify(result, plain));
