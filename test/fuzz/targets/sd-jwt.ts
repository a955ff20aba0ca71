import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { parseDisclosureFrame } from '../../../domain/formats/sd-jwt/disclosure-frame.ts';
import { processDisclosures } from '../../../domain/formats/sd-jwt/disclosures.ts';
import { assertKeyBindingHeader, verifyKeyBindingClaims, verifyTransactionData } from '../../../domain/formats/sd-jwt/key-binding.ts';
import { parseSdJwt } from '../../../domain/formats/sd-jwt/parse.ts';
import {
  assertNoForbiddenDisclosures,
  parseCertificateChain,
  parseHolderKey,
  parseIssuerHeader,
  parseSdJwtVc,
} from '../../../domain/formats/sd-jwt/sd-jwt-vc.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { isJsonObject, type JsonObject, parseJson } from '../../../domain/shared/json.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { digestOf, disclosureOf } from '../../support/sd-jwt-maker.ts';
import { AUDIENCE, NONCE, NOW } from '../constants.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { JOSE_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const validTexts = new Set(['sd-jwt', 'sd-jwt-unbound'].map((name) => text(seed(name))));
const goodIssuer = new Set([...validTexts].map((validText) => validText.split('~', 1)[0]));
const binding = { now: NOW, nonce: NONCE, audience: [AUDIENCE, 'origin:https://a.example'] };
const expected = isInstanceOfAny(Refusal);

/** Everything that is done with a presentation, with and without its signatures. */
function presentation(input: Buffer): void {
  const parsedSdJwt = parseSdJwt(text(input));
  const { issuer, disclosures, keyBinding, boundText } = parsedSdJwt;
  const isSigned = signatures.verify(KEYS.issuer, issuer.signingInput, issuer.signature);
  const [issuerText = ''] = text(input).split('~', 1);
  ensure(!isSigned || goodIssuer.has(issuerText), 'nothing verifies that nobody signed');
  parseIssuerHeader(issuer.header, SIGNING_ALGORITHMS);
  parseCertificateChain(issuer.header);
  const processed = processDisclosures(issuer.payload, disclosures);
  assertNoForbiddenDisclosures(issuer.payload, processed);
  parseSdJwtVc(issuer.payload, processed, NOW);
  const holder = parseHolderKey(issuer.payload);
  if (keyBinding === undefined) return;
  assertKeyBindingHeader(keyBinding.header, holder, SIGNING_ALGORITHMS);
  verifyKeyBindingClaims(keyBinding.payload, boundText, processed.hashName, binding);
  const isBound = signatures.verify(holder, keyBinding.signingInput, keyBinding.signature);
  if (isSigned && isBound) ensure(validTexts.has(text(input)), 'a presentation that was changed is not accepted');
}

/**
 * Digests are computed from the disclosures, so that mutations of them stay valid: `#1` is the digest of the second one.
 */
function disclosed(input: Buffer): void {
  const document = parseJson(text(input), 60);
  if (!isJsonObject(document) || !isJsonObject(document['payload']) || !Array.isArray(document['disclosures'])) return;
  const disclosures: string[] = [];
  const fill = (value: unknown): JsonObject => {
    const payloadText = JSON.stringify(value).replaceAll(/"#(\d)"/g, (_, index) => JSON.stringify(digestOf(disclosures[index] ?? '')));
    return JSON.parse(payloadText) as JsonObject;
  };
  for (const disclosureParts of document['disclosures']) {
    disclosures.push(
      Array.isArray(disclosureParts) ? disclosureOf(...(fill(disclosureParts) as never as unknown[])) : String(disclosureParts),
    );
  }
  const payload = fill(document['payload']);
  const processed = processDisclosures(payload, disclosures);
  ensure(Object.getPrototypeOf(processed.claims) === null, 'no name reaches a prototype');
  ensure(!holdsDigests(processed.claims), 'no digests are left');
  assertNoForbiddenDisclosures(payload, processed);
  parseSdJwtVc(payload, processed, NOW);
  parseHolderKey(payload);
}

function holdsDigests(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, value]) => ['_sd', '_sd_alg'].includes(name) || holdsDigests(value));
}

const entries = [{ type: 'a' }, { type: 'b', transaction_data_hashes_alg: ['sha-256', 'sha-512'] }].map((entry) =>
  Buffer.from(JSON.stringify(entry)).toString('base64url'),
);

function transactionData(input: Buffer): void {
  const payload = parseJson(text(input));
  if (!isJsonObject(payload)) return;
  const [firstEntry = '', secondEntry = ''] = entries;
  const confirmed = verifyTransactionData(payload, [firstEntry], []);
  ensure(confirmed.includes(firstEntry), 'what is required is confirmed');
  verifyTransactionData(payload, [], [firstEntry, secondEntry]);
  verifyTransactionData(payload, [secondEntry], [firstEntry]);
}

const hashes = entries.map((entry) => digestOf(entry));
const payload = { vct: 'v', iat: 1, cnf: { jwk: KEYS.holder }, _sd_alg: 'sha-256' };

export const SD_JWT: readonly Target[] = [
  {
    name: 'sd-jwt',
    expected,
    seeds: [...validTexts],
    dictionary: [...JOSE_WORDS, '~', '~~', '_sd', '_sd_alg', 'sha-512', 'kb+jwt', 'dc+sd-jwt', 'sd_hash', 'vct'],
    decode: presentation,
  },
  {
    name: 'disclosures',
    expected,
    seeds: [
      JSON.stringify({ payload: { ...payload, _sd: ['#0', 'x'] }, disclosures: [['salt', 'age', 42]] }),
      JSON.stringify({
        payload: { ...payload, a: { _sd: ['#1'], list: [{ '...': '#0' }, { '...': 'y' }] } },
        disclosures: [
          ['salt', { b: 1 }],
          ['salt', 'name', [1, { '...': '#2' }]],
          ['salt', 'v'],
        ],
      }),
    ],
    dictionary: ['#0', '#1', '#2', '_sd', '...', '_sd_alg', 'sha-384', 'md5', 'vct', 'cnf', 'exp', 'status', 'iss', 'iat'],
    decode: disclosed,
  },
  {
    name: 'transaction-data',
    expected,
    seeds: [
      JSON.stringify({ transaction_data_hashes: hashes }),
      JSON.stringify({ transaction_data_hashes: hashes, transaction_data_hashes_alg: 'sha-256' }),
    ],
    dictionary: ['sha-256', 'sha-512', ...hashes],
    decode: transactionData,
  },
  {
    name: 'disclosure-frame',
    expected: isInstanceOfAny(Failure),
    seeds: ['{"_sd":["given_name"],"address":{"_sd":["street"]},"nationalities":{"_sd":[0,1],"_sd_decoy":3}}'],
    dictionary: ['_sd', '_sd_decoy', '...', 'vct', 'iss'],
    decode: (input) => parseDisclosureFrame(parseJson(text(input), 60)),
  },
];
