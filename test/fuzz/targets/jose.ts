import { NodeEncryption } from '../../../adapters/crypto/encryption.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import {
  joinCompact,
  parseAlgorithm,
  parseCompactJws,
  parseX5c,
  supportsCriticalParameters,
} from '../../../domain/formats/jose/compact.ts';
import { decodeBase64url, encodeBase64url } from '../../../domain/shared/base64url.ts';
import { decodeJson } from '../../../domain/shared/json.ts';
import { isOnCurve, parsePublicJwk, SIGNING_ALGORITHMS, thumbprint } from '../../../domain/shared/jwk.ts';
import { ensure, neverExpected, type Target } from '../engine/target.ts';
import { JOSE_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const encryption = new NodeEncryption();
const signedSeeds = ['status-jwt', 'trust-list', 'foreign-token'].map(seed);
const signedInputs = new Set(signedSeeds.map((jws) => text(jws).slice(0, text(jws).lastIndexOf('.'))));

function compactJws(input: Buffer): void {
  const jws = parseCompactJws(text(input));
  if (jws === undefined) return;
  const { header, payload, signingInput, signature } = jws;
  ensure(joinCompact(signingInput, signature) === text(input), 'a JWS is written as it was read');
  const [headerPart = '', payloadPart = ''] = signingInput.split('.');
  for (const [encodedPart, value] of [[headerPart, header] as const, [payloadPart, payload] as const]) {
    const reencoded = JSON.stringify(JSON.parse(Buffer.from(encodedPart, 'base64url').toString()));
    ensure(reencoded === JSON.stringify(value), 'JSON means what it means to everybody');
  }
  const algorithm = parseAlgorithm(header, SIGNING_ALGORITHMS);
  if (Object.hasOwn(header, 'crit')) ensure(algorithm.fault !== undefined, 'no critical extension is passed over');
  supportsCriticalParameters(header, ['b64']);
  parseX5c(header);
  if (signatures.verify(KEYS.issuer, signingInput, signature)) {
    ensure(signedInputs.has(signingInput), 'nothing verifies that nobody signed');
  }
}

function publicKey(input: Buffer): void {
  const key = parsePublicJwk(decodeJson(encodeBase64url(input)));
  if (key === undefined) return;
  ensure(!('d' in key) && !('k' in key), 'no private member is kept');
  ensure(thumbprint(key).length === 43, 'a key has a thumbprint');
  isOnCurve(key);
  signatures.verify(key, 'text', Buffer.alloc(key.crv === 'P-384' ? 96 : key.crv === 'P-521' ? 132 : 64, 1));
}

const plaintexts = new Set(['jwe', 'jwe-deflated'].map((name) => encryption.decrypt(text(seed(name)), KEYS.encryption, { inflate: true })));

function jwe(input: Buffer): void {
  const [message = '', inflates] = text(input).split('\n');
  const plaintext = encryption.decrypt(message, KEYS.encryption, { inflate: inflates === undefined });
  if (plaintext !== undefined) ensure(plaintexts.has(plaintext), 'nothing decrypts that was changed on its way');
}

function base64url(input: Buffer): void {
  const bytes = decodeBase64url(text(input));
  if (bytes !== undefined) ensure(encodeBase64url(bytes) === text(input), 'a value has one spelling');
}

export const JOSE: readonly Target[] = [
  { name: 'compact-jws', expected: neverExpected, seeds: [...signedSeeds, seed('proof')], dictionary: JOSE_WORDS, decode: compactJws },
  {
    name: 'public-jwk',
    expected: neverExpected,
    seeds: [
      JSON.stringify(KEYS.issuer),
      '{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}',
      JSON.stringify({ kty: 'EC', crv: 'P-384', x: 'A'.repeat(64), y: 'A'.repeat(64) }),
    ],
    dictionary: JOSE_WORDS,
    decode: publicKey,
  },
  {
    name: 'jwe',
    expected: neverExpected,
    seeds: [seed('jwe'), seed('jwe-deflated'), `${text(seed('jwe'))}\nplain`],
    dictionary: [...JOSE_WORDS, 'epk', 'enc', 'zip', 'DEF', 'A128GCM', 'A256GCM', 'ECDH-ES', 'apu', 'apv', 'cty'],
    decode: jwe,
  },
  { name: 'base64url', expected: neverExpected, seeds: ['', 'AA', 'AAA', 'AAAA', '_-8'], dictionary: ['=', '+', '/'], decode: base64url },
];
