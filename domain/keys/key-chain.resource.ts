import { z } from 'zod';
import { type JsonObject, parseJsonObject } from '../shared/json.ts';
import { resource } from '../shared/resource.ts';
import { subjectNames } from './certificate-subject.ts';
import { KEY_USAGES, type KeyChain } from './key-chain.ts';
import { findKeyChainProblems } from './key-chain-findings.ts';
import { KeyChainCreation, KeyChainImport, ONE_OF_USAGES } from './key-chain-input.ts';
import { isSelfSigned } from './self-signed.ts';
import { isSameHandle } from './signing-key.ts';

/** A file may describe a key without usages, like `POST /key`. */
const usages = { usages: z.array(z.enum(KEY_USAGES)).max(KEY_USAGES.length).optional() };

export const keyChainResource = resource<KeyChain>()({
  kind: 'key-chain',
  repository: 'keyChains',
  revision: 'keyChains',
  isDocument: true,
  auditedValues: ['usages', 'kmsProvider', 'rotationEnabled', 'rotationIntervalDays', 'certValidityDays'],
  actionOf: (previous: KeyChain, current: KeyChain) =>
    isSameHandle(previous.active.key.handle, current.active.key.handle) ? 'changed' : 'rotated',
  editablePart: (chain: KeyChain) => chain,
  findings: findKeyChainProblems,
  volatileProperties: [
    'activeKey',
    'activeCertificate',
    'activeCertificateExpiry',
    'compromisedAt',
    'lastRotatedAt',
    'key',
    'previousKey',
    'previousCertificate',
    'previousKeyExpiry',
    'previousKeys',
  ],
  file: {
    path: 'keys/*',
    id: 'id',
    body: z.object({ ...KeyChainCreation.shape, ...usages }).refine(...ONE_OF_USAGES),
    alternative: { member: 'key', body: z.object({ ...KeyChainImport.shape, ...usages }).refine(...ONE_OF_USAGES) },
    refersTo: ['tenant'],
    read: withReadableKey,
    write: writeKeyChain,
  },
});

/**
 * Converts a JWK to an object, and `
 * ` in a PEM to line breaks.
 */
function withReadableKey(value: JsonObject): JsonObject {
  const { key } = value;
  if (typeof key !== 'string') return value;
  if (key.trimStart().startsWith('{')) return { ...value, key: parseJsonObject(key) ?? key };
  return { ...value, key: key.includes('\n') ? key : key.replaceAll('\\n', '\n') };
}

/** The description from which an equivalent key chain can be created; its private key does not leave the KMS. */
function writeKeyChain(chain: KeyChain, chains: readonly KeyChain[]): object {
  const { id, description, usages, kmsProvider, active, root } = chain;
  const { rotationEnabled, rotationIntervalDays, certValidityDays } = chain;
  const { commonName, country, organization } = subjectNames(active.certificates[0] ?? '');
  return {
    id,
    description,
    usages,
    kmsProvider,
    algorithm: active.key.handle.algorithm,
    subjectName: withinNameLimit(commonName),
    country,
    organization: withinNameLimit(organization),
    rotationEnabled,
    rotationIntervalDays,
    certValidityDays,
    rootKeyChainId: root && authorityChainId(chain, chains),
    selfSigned: root === undefined && isSelfSigned(active) ? true : undefined,
  };
}

/** Names in imported certificates may exceed the limit. */
function withinNameLimit(name: string | undefined): string | undefined {
  return name !== undefined && name.length <= 64 ? name : undefined;
}

/** The oldest key chain under the same CA; undefined if that is this one. */
function authorityChainId({ id, root }: KeyChain, chains: readonly KeyChain[]): string | undefined {
  const [oldest] = chains
    .filter((candidate) => root && candidate.root && isSameHandle(candidate.root.key.handle, root.key.handle))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1));
  return oldest?.id === id ? undefined : oldest?.id;
}
