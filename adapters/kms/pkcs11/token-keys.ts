import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { MECHANISMS } from './algorithms.ts';
import { type Attribute, CKA, CKO, type Cryptoki, type Handle } from './cryptoki.ts';
import { asRejection, CKR, faultOf, TokenFault } from './fault.ts';

/** Identifies a key on the token by both values, so that the id of another tenant's key finds nothing. */
export type KeyName = {
  /** CKA_ID, hexadecimal. */
  readonly id: string;
  /** CKA_LABEL. */
  readonly label: string;
  readonly algorithm: SigningAlgorithm;
};

/** More objects than a pair under one name are a fault of the token; up to this number of them are removed. */
const MAX_OBJECTS = 16;

/** @returns CKA_EC_POINT of the new pair. @throws TokenFault `curve` if the token cannot create such a pair. */
export function generatePair(cryptoki: Cryptoki, session: Handle, key: KeyName): Buffer {
  const { generate: mechanism } = MECHANISMS[key.algorithm];
  const pair = createWithFirstAccepted(key, 'curve', (curve, privateHalf) =>
    cryptoki.C_GenerateKeyPair(
      session,
      { mechanism },
      [
        { type: CKA.token, value: true },
        { type: CKA.private, value: false },
        { type: CKA.verify, value: true },
        { type: CKA.ecParameters, value: curve },
        ...nameAttributes(key),
      ],
      privateHalf,
    ),
  );
  return destroyOnFault(cryptoki, session, key, [pair.publicKey, pair.privateKey], () => {
    assertNotExtractable(cryptoki, session, pair.privateKey);
    const [point] = cryptoki.C_GetAttributeValue(session, pair.publicKey, [{ type: CKA.ecPoint }]);
    return point?.value ?? Buffer.alloc(0);
  });
}

/**
 * @param secret the private number (RFC 5915 section 3), or the seed of Ed25519 (RFC 8032 section 5.1.5).
 * @throws TokenFault `foreign` if the token accepts no external keys.
 */
export function createPrivateKey(cryptoki: Cryptoki, session: Handle, key: KeyName, secret: Buffer): void {
  const { keyType } = MECHANISMS[key.algorithm];
  const object = createWithFirstAccepted(key, 'foreign', (curve, privateHalf) =>
    cryptoki.C_CreateObject(session, [
      { type: CKA.class, value: CKO.privateKey },
      { type: CKA.keyType, value: keyType },
      { type: CKA.ecParameters, value: curve },
      { type: CKA.value, value: secret },
      ...privateHalf,
    ]),
  );
  destroyOnFault(cryptoki, session, key, [object], () => assertNotExtractable(cryptoki, session, object));
}

/** @throws TokenFault `key` unless exactly one key exists, and is for the algorithm. */
export function findPrivateKey(cryptoki: Cryptoki, session: Handle, key: KeyName): Handle {
  const [privateKey, ...more] = find(cryptoki, session, [{ type: CKA.class, value: CKO.privateKey }, ...nameAttributes(key)]);
  if (privateKey === undefined) throw new TokenFault('key', `the token has no key ${key.label}`);
  if (more.length > 0) throw new TokenFault('key', `the token has more than one key ${key.label}`);
  const [attribute] = cryptoki.C_GetAttributeValue(session, privateKey, [{ type: CKA.ecParameters }]);
  const curve = attribute?.value ?? Buffer.alloc(0);
  // A token would sign with any curve, and truncate a hash of the wrong length.
  if (!MECHANISMS[key.algorithm].curve.some((name) => name.equals(curve)))
    throw new TokenFault('key', `the key ${key.label} is not for ${key.algorithm}`);
  return privateKey;
}

/** Destroys both halves, and the remains of an interrupted creation. */
export function destroyAll(cryptoki: Cryptoki, session: Handle, key: KeyName): void {
  for (const object of find(cryptoki, session, nameAttributes(key))) destroy(cryptoki, session, object);
}

function find(cryptoki: Cryptoki, session: Handle, template: readonly Attribute[]): Handle[] {
  cryptoki.C_FindObjectsInit(session, template);
  try {
    return cryptoki.C_FindObjects(session, MAX_OBJECTS);
  } finally {
    cryptoki.C_FindObjectsFinal(session);
  }
}

function nameAttributes({ id, label }: KeyName): Attribute[] {
  return [
    { type: CKA.id, value: Buffer.from(id, 'hex') },
    { type: CKA.label, value: label },
  ];
}

/** Template of a key that signs and is not extractable. */
function privateTemplate(key: KeyName): Attribute[] {
  return [
    { type: CKA.token, value: true },
    { type: CKA.private, value: true },
    { type: CKA.sensitive, value: true },
    { type: CKA.extractable, value: false },
    { type: CKA.sign, value: true },
    ...nameAttributes(key),
  ];
}

/** Attributes that forbid all other uses; some tokens lack them for elliptic curves. */
const NO_OTHER_USES: readonly Attribute[] = [CKA.decrypt, CKA.unwrap, CKA.derive, CKA.signRecover].map((type) => ({ type, value: false }));

/** Some tokens ignore attributes that they do not support, so the created key is checked. */
function assertNotExtractable(cryptoki: Cryptoki, session: Handle, key: Handle): void {
  const [sensitive, extractable] = cryptoki.C_GetAttributeValue(session, key, [{ type: CKA.sensitive }, { type: CKA.extractable }]);
  if (sensitive?.value[0] === 1 && extractable?.value[0] === 0) return;
  throw new TokenFault('other', 'the token created an exportable key');
}

/** Tries templates from the strictest to the plainest, until the token accepts one. */
function createWithFirstAccepted<T>(
  key: KeyName,
  kind: 'curve' | 'foreign',
  create: (curve: Buffer, privateHalf: readonly Attribute[]) => T,
): T {
  const plain = privateTemplate(key);
  let lastFault: TokenFault | undefined;
  for (const privateHalf of [[...plain, ...NO_OTHER_USES], plain]) {
    for (const curve of MECHANISMS[key.algorithm].curve) {
      try {
        return create(curve, privateHalf);
      } catch (error) {
        lastFault = asRejection(error, kind);
        if (lastFault.kind === 'session') throw lastFault;
      }
    }
  }
  throw lastFault ?? new TokenFault('other', 'no curve');
}

/** @throws the fault of `work`, with a note on the objects. */
function destroyOnFault<T>(cryptoki: Cryptoki, session: Handle, key: KeyName, objects: readonly Handle[], work: () => T): T {
  try {
    return work();
  } catch (error) {
    const undestroyed = objects.filter((object) => {
      try {
        destroy(cryptoki, session, object);
        return false;
      } catch {
        return true;
      }
    });
    const { kind, message, code } = faultOf(error);
    throw new TokenFault(kind, `${message}; ${removalOutcome(key, undestroyed.length === 0)}`, code);
  }
}

/** Note for operators: an unused key may stay on the token until they remove it. */
export function removalOutcome({ label }: KeyName, isGone: boolean): string {
  return isGone ? 'the key was destroyed' : `the key ${label} could not be destroyed: remove it from the token`;
}

function destroy(cryptoki: Cryptoki, session: Handle, object: Handle): void {
  try {
    cryptoki.C_DestroyObject(session, object);
  } catch (error) {
    if (faultOf(error).code !== CKR.objectHandleInvalid) throw error;
  }
}
