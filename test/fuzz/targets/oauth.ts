import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { ASSERTION_TYPE, assertAssertionClaims, keysFor, parseAssertion } from '../../../domain/oauth/client-assertion.ts';
import { assertAttestationClaims, instanceKeyOf, parseAttestation } from '../../../domain/oauth/client-attestation.ts';
import { assertDpopProofClaims, parseDpopProof } from '../../../domain/oauth/dpop.ts';
import { EXTERNAL_TOKEN_TYPES, parseExternalToken, unverifiedIssuer } from '../../../domain/oauth/external-token.ts';
import { parseForeignKeys, pickForeignKey } from '../../../domain/oauth/foreign-keys.ts';
import { assertForeignClaims, ForeignTokenError, parseForeignToken } from '../../../domain/oauth/foreign-token.ts';
import { assertIdTokenClaims } from '../../../domain/oauth/id-token.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { isJsonObject, parseJson } from '../../../domain/shared/json.ts';
import { AUDIENCE, NONCE, NOW } from '../constants.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { JOSE_WORDS, KEYS, lines, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const expected = isInstanceOfAny(Failure);
const configurations = [
  { id: 'pid', scope: 'pid' },
  { id: 'mdl', scope: 'mdl' },
];
const tokens = ['dpop', 'client-attestation', 'client-assertion', 'foreign-token'].map((name) => text(seed(name)));
const [goodDpop = '', goodAttestation = '', assertion = '', foreign = ''] = tokens;
function dpop(input: Buffer): void {
  const values = lines(input);
  const proof = parseDpopProof(values);
  const accepted = assertDpopProofClaims(proof, { method: 'POST', url: `${AUDIENCE}/token`, now: NOW });
  ensure(!Number.isNaN(accepted.expiresAt.getTime()), 'what is remembered is forgotten at a time');
  const isSigned = signatures.verify(proof.key, proof.signingInput, proof.signature);
  ensure(!isSigned || values[0] === goodDpop, 'nothing verifies that nobody signed');
}

function attestation(input: Buffer): void {
  const [attestationLine, ...pops] = lines(input);
  const parsedAttestation = parseAttestation(
    attestationLine === '' || attestationLine === undefined ? [] : [attestationLine],
    pops,
    input.length % 2 === 0,
  );
  if (parsedAttestation === undefined) return;
  const key = instanceKeyOf(parsedAttestation);
  const expectation = { audience: AUDIENCE, now: NOW, clientId: undefined, maxAgeSeconds: 600 };
  const accepted = assertAttestationClaims(parsedAttestation, key, expectation);
  const expiresAt = accepted.proof?.expiresAt ?? NOW;
  ensure(!Number.isNaN(expiresAt.getTime()), 'what is remembered is forgotten at a time');
  const { attestation: attested, pop } = parsedAttestation;
  const isSigned =
    signatures.verify(KEYS.issuer, attested.signingInput, attested.signature) &&
    pop !== undefined &&
    signatures.verify(key, pop.signingInput, pop.signature);
  ensure(!isSigned || text(input) === goodAttestation, 'nothing verifies that nobody signed');
}

function clientAssertion(input: Buffer): void {
  const [token = '', keys = '', type = ASSERTION_TYPE] = lines(input);
  const parsedAssertion = parseAssertion({ client_assertion: token, client_assertion_type: type });
  if (parsedAssertion === undefined) return;
  keysFor(parsedAssertion, parseJson(keys));
  const { expiresAt } = assertAssertionClaims(parsedAssertion, AUDIENCE, NOW);
  ensure(!Number.isNaN(expiresAt.getTime()), 'what is remembered is forgotten at a time');
}

function foreignToken(input: Buffer): void {
  const [token = '', keys = ''] = lines(input);
  unverifiedIssuer(token);
  const parsedToken = parseForeignToken(token, EXTERNAL_TOKEN_TYPES);
  const set = parseJson(keys);
  const foreignKeys = isJsonObject(set) ? parseForeignKeys(set) : undefined;
  if (foreignKeys !== undefined) pickForeignKey(foreignKeys, parsedToken);
  const claims = parsedToken.jws.payload;
  assertForeignClaims(claims, { issuer: 'https://as.example', audience: AUDIENCE, now: NOW });
  const parsedRights = parseExternalToken({ type: parsedToken.type, claims }, { credentialIssuer: AUDIENCE, configurations });
  ensure(
    parsedRights.credentialConfigurationIds.every((id) => configurations.some((configuration) => configuration.id === id)),
    'no right is made up',
  );
  assertIdTokenClaims({ algorithm: parsedToken.algorithm, claims }, { clientId: 'wallet', nonce: NONCE, accessToken: 'token' });
}

const rsa = { kty: 'RSA', n: Buffer.alloc(256, 255).toString('base64url'), e: 'AQAB', alg: 'RS256', use: 'sig', kid: 'one' };
const keySet = JSON.stringify({ keys: [{ ...KEYS.holder, kid: 'one', use: 'sig', key_ops: ['verify'] }, rsa] });
export const OAUTH: readonly Target[] = [
  { name: 'dpop', expected, seeds: [goodDpop], dictionary: [...JOSE_WORDS, 'htm', 'htu', 'ath', ',', '\n'], decode: dpop },
  { name: 'client-attestation', expected, seeds: [goodAttestation], dictionary: [...JOSE_WORDS, ',', '\n'], decode: attestation },
  {
    name: 'client-assertion',
    expected,
    seeds: [`${assertion}\n${keySet}`],
    dictionary: [...JOSE_WORDS, 'keys', 'use', '\n'],
    decode: clientAssertion,
  },
  {
    name: 'foreign-token',
    expected: isInstanceOfAny(ForeignTokenError),
    seeds: [`${foreign}\n${keySet}`],
    dictionary: [...JOSE_WORDS, 'RS256', 'PS512', 'n', 'e', 'at_hash', 'azp', 'scope', 'authorization_details', 'locations'],
    decode: foreignToken,
  },
];
