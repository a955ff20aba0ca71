import { z } from 'zod';
import { type JsonObject, parseJsonObject } from '../shared/json.ts';
import { resource } from '../shared/resource.ts';
import { subjectNames } from './certificate-subject.ts';
import { KEY_USAGES, type KeyChain } from './key-chain.ts';
import { findKeyChainProblems } from './key-chain-findings.ts';
import { KeyChainCreation, KeyChainImport, ONE_OF_USAGES } from './key-chain-input.ts';
import { isSelfSigned } from './self-signed.ts';
import { isSameHandle } from './signing-key.ts';

/** A file may describe a key without any usage, as `POST /key` makes them. */
const usages = { usages: z.array(z.enum(KEY_USAGES)).max(KEY_USAGES.length).optional() };

export const keyChainResource = resource<KeyChain>()({
  kind: 'key-chain',
  repository: 'keyChains',
  revision: 'keyChains',
  isDocument: true,
  shown: ['usages', 'kmsProvider', 'rotationEnabled', 'rotationIntervalDays', 'certValidityDays'],
  actionOf: (before: KeyChain, after: KeyChain) =>
    isSameHandle(before.active.key.handle, after.active.key.handle) ? 'changed' : 'rotated',
  edited: (chain: KeyChain) => chain,
  findings: findKeyChainProblems,
  changing: [
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
    alternative: {
      member: 'key',
      body: z.object({ ...KeyChainImport.shape, ...usages }).refine(...ONE_OF_USAGES),
    },
    refersTo: ['tenant'],
    read: withReadableKey,
    write: writeKeyChain,
  },
});

/** A JWK is an object, and line breaks of a PEM may have been written `\n`. */
function withReadableKey(value: JsonObject): JsonObject {
  const { key } = value;
  if (typeof key !== 'string') return value;
  if (key.trimStart().startsWith('{')) return { ...value, key: parseJsonObject(key) ?? key };
  return { ...value, key: key.includes('\n') ? key : key.replaceAll('\\n', '\n') };
}

/** How another key chain like this one is made; its private key does not leave the KMS. */
function writeKeyChain(chain: KeyChain, all: readonly KeyChain[]): object {
  const { id, description, usages, kmsProvider, active, root } = chain;
  const { rotationEnabled, rotationIntervalDays, certValidityDays } = chain;
  const { commonName, country, organization } = subjectNames(active.certificates[0] ?? '');
  return {
    id,
    description,
    usages,
    kmsProvider,
    algorithm: active.key.handle.algorithm,
    subjectName: fitting(commonName),
    country,
    organization: fitting(organization),
    rotationEnabled,
    rotationIntervalDays,
    certValidityDays,
    rootKeyChainId: root && authorityOf(chain, all),
    selfSigned: root === undefined && isSelfSigned(active) ? true : undefined,
  };
}

/** Certificates from elsewhere have longer names than those that are made here. */
function fitting(name: string | undefined): string | undefined {
  return name !== undefined && name.length <= 64 ? name : undefined;
}

/** The oldest key chain under the same CA, unless that is this one. */
function authorityOf({ id, root }: KeyChain, all: readonly KeyChain[]): string | undefined {
  const [first] = all
    .filter((other) => root && other.root && isSameHandle(other.root.key.handle, root.key.handle))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1));
  return first?.id === id ? undefined : first?.id;
}
