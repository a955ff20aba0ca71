import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { parseProofs, resolveConfiguration } from '../../../domain/issuance/credential-request.ts';
import { parseResponseEncryption } from '../../../domain/issuance/encryption.ts';
import { assertKeyAttestationClaims, parseKeyAttestation } from '../../../domain/issuance/key-attestation.ts';
import { parseNotification } from '../../../domain/issuance/notification.ts';
import { assertJwtProofClaims, parseJwtProof } from '../../../domain/issuance/proof.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { isJsonObject, parseJson } from '../../../domain/shared/json.ts';
import { AUDIENCE, NOW } from '../constants.ts';
import { ensure, isInstanceOfAny, type Target } from '../engine/target.ts';
import { JOSE_WORDS, JSON_WORDS, KEYS, seed, text } from './seeds.ts';

const signatures = new NodeSignatures();
const expected = isInstanceOfAny(Failure);
const proofs = ['proof', 'proof-attested'].map((name) => text(seed(name)));
const goodAttestation = text(seed('key-attestation'));

function proof(input: Buffer): void {
  const parsedProof = parseJwtProof(text(input));
  const isSigned = signatures.verify(parsedProof.key, parsedProof.signingInput, parsedProof.signature);
  assertJwtProofClaims(parsedProof, { audience: AUDIENCE, clientId: 'wallet', now: NOW });
  ensure(!isSigned || proofs.includes(text(input)), 'nothing verifies that nobody signed');
}

function keyAttestation(input: Buffer): void {
  const { jws } = parseKeyAttestation(text(input));
  const isSigned = signatures.verify(KEYS.issuer, jws.signingInput, jws.signature);
  ensure(!isSigned || text(input) === goodAttestation, 'nothing verifies that nobody signed');
  const levels = { key_storage: ['iso_18045_high'] } as never;
  assertKeyAttestationClaims(jws.payload, { proofType: 'jwt', levels, now: NOW });
}

const token = { identifiers: true, credentialConfigurationIds: ['pid'], configurationOfIdentifier: new Map([['p1', 'pid']]) };
const configuration = { keyBinding: true, proofTypes: ['jwt', 'attestation'], keyAttestationsRequired: undefined };

function credentialRequest(input: Buffer): void {
  const body = parseJson(text(input));
  if (!isJsonObject(body)) return;
  const find = (id: string) => (id === 'pid' ? (configuration as never) : undefined);
  resolveConfiguration(body, token as never, find);
  const parsedProofs = parseProofs(body, configuration as never, 3);
  ensure(parsedProofs !== undefined && parsedProofs.texts.length <= 3, 'no more proofs are read than a batch has');
  parseResponseEncryption(body, { use: 'optional', encrypted: true } as never);
}

const { publicJwk } = KEYS.encryption;
const encryption = { jwk: { ...publicJwk, alg: 'ECDH-ES' }, enc: 'A128GCM', zip: 'DEF' };

export const ISSUANCE: readonly Target[] = [
  { name: 'proof', expected, seeds: proofs, dictionary: [...JOSE_WORDS, 'key_attestation', 'trust_chain', 'attested_keys'], decode: proof },
  {
    name: 'key-attestation',
    expected,
    seeds: [goodAttestation],
    dictionary: [...JOSE_WORDS, 'attested_keys', 'key_storage', 'user_authentication'],
    decode: keyAttestation,
  },
  {
    name: 'credential-request',
    expected,
    seeds: [
      JSON.stringify({ credential_identifier: 'p1', proofs: { jwt: ['a', 'b'] }, credential_response_encryption: encryption }),
      JSON.stringify({ credential_configuration_id: 'pid', proofs: { attestation: ['a'] } }),
    ],
    dictionary: [...JOSE_WORDS, 'proofs', 'jwt', 'attestation', 'pid', 'p1', 'enc', 'zip', 'A256GCM', 'use'],
    decode: credentialRequest,
  },
  {
    name: 'notification',
    expected,
    seeds: ['{"notification_id":"n","event":"credential_accepted","event_description":"fine"}'],
    dictionary: [...JSON_WORDS, 'credential_failure', 'credential_deleted'],
    decode: (input) => parseNotification('application/json; charset=utf-8', input),
  },
];
