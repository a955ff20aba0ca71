import type { SigningAlgorithm } from '../../../domain/shared/jwk.ts';
import { MECHANISMS } from './algorithms.ts';
import { type Attribute, CKA, CKO, type Cryptoki, type Handle } from './cryptoki.ts';
import { asRefusal, CKR, faultOf, TokenFault } from './fault.ts';

/** How a key is found on the token: by both, so that the identifier of another tenant's key finds nothing. */
export type KeyName = {
  /** CKA_ID, hexadecimal. */
  readonly id: string;
  /** CKA_LABEL. */
  readonly label: string;
  readonly algorithm: SigningAlgorithm;
};

/** More than a pair under one name is a fault of the token, and is removed as far as this goes. */
const MOST_OBJECTS = 16;

/** @returns CKA_EC_POINT of the new pair. @throws TokenFault `curve` when the token makes no such pair. */
export function generatePair(cryptoki: Cryptoki, session: Handle, key: KeyName): Buffer {
  const { generate: mechanism } = MECHANISMS[key.algorithm];
  const pair = firstTaken(key, 'curve', (curve, privateHalf) =>
    cryptoki.C_GenerateKeyPair(
      session,
      { mechanism },
      [
        { type: CKA.token, value: true },
        { type: CKA.private, value: false },
        { type: CKA.verify, value: true },
        { type: CKA.ecParameters, value: curve },
        ...named(key),
      ],
      privateHalf,
    ),
  );
  return orDestroyed(cryptoki, session, key, [pair.publicKey, pair.privateKey], () => {
    assertKept(cryptoki, session, pair.privateKey);
    const [point] = cryptoki.C_GetAttributeValue(session, pair.publicKey, [{ type: CKA.ecPoint }]);
    return point?.value ?? Buffer.alloc(0);
  });
}

/**
 * @param secret the private number (RFC 5915 section 3), or the seed of Ed25519 (RFC 8032 section 5.1.5).
 * @throws TokenFault `foreign` when the token takes no key from outside.
 */
export function createPrivateKey(cryptoki: Cryptoki, session: Handle, key: KeyName, secret: Buffer): void {
  const { keyType } = MECHANISMS[key.algorithm];
  const made = firstTaken(key, 'foreign', (curve, privateHalf) =>
    cryptoki.C_CreateObject(session, [
      { type: CKA.class, value: CKO.privateKey },
      { type: CKA.keyType, value: keyType },
      { type: CKA.ecParameters, value: curve },
      { type: CKA.value, value: secret },
      ...privateHalf,
    ]),
  );
  orDestroyed(cryptoki, session, key, [made], () => assertKept(cryptoki, session, made));
}

/** @throws TokenFault `key` unless there is exactly one, and it is for the algorithm. */
export function findPrivateKey(cryptoki: Cryptoki, session: Handle, key: KeyName): Handle {
  const [found, ...more] = find(cryptoki, session, [{ type: CKA.class, value: CKO.privateKey }, ...named(key)]);
  if (found === undefined) throw new TokenFault('key', `the token has no key ${key.label}`);
  if (more.length > 0) throw new TokenFault('key', `the token has more than one key ${key.label}`);
  const [shown] = cryptoki.C_GetAttributeValue(session, found, [{ type: CKA.ecParameters }]);
  const curve = shown?.value ?? Buffer.alloc(0);
  // A token would sign with any curve, and a hash of the wrong length is cut.
  if (!MECHANISMS[key.algorithm].curve.some((name) => name.equals(curve)))
    throw new TokenFault('key', `the key ${key.label} is not for ${key.algorithm}`);
  return found;
}

/** Both halves, and what an interrupted creation left. */
export function destroyAll(cryptoki: Cryptoki, session: Handle, key: KeyName): void {
  for (const object of find(cryptoki, session, named(key))) destroy(cryptoki, session, object);
}

function find(cryptoki: Cryptoki, session: Handle, template: readonly Attribute[]): Handle[] {
  cryptoki.C_FindObjectsInit(session, template);
  try {
    return cryptoki.C_FindObjects(session, MOST_OBJECTS);
  } finally {
    cryptoki.C_FindObjectsFinal(session);
  }
}

function named({ id, label }: KeyName): Attribute[] {
  return [
    { type: CKA.id, value: Buffer.from(id, 'hex') },
    { type: CKA.label, value: label },
  ];
}

/** It signs and never leaves. */
function privateTemplate(key: KeyName): Attribute[] {
  return [
    { type: CKA.token, value: true },
    { type: CKA.private, value: true },
    { type: CKA.sensitive, value: true },
    { type: CKA.extractable, value: false },
    { type: CKA.sign, value: true },
    ...named(key),
  ];
}

/** And does nothing else; some tokens have no such attributes for keys of elliptic curves. */
const NOTHING_ELSE: readonly Attribute[] = [CKA.decrypt, CKA.unwrap, CKA.derive, CKA.signRecover].map((type) => ({ type, value: false }));

/** Some tokens pass over what they do not keep to. */
function assertKept(cryptoki: Cryptoki, session: Handle, key: Handle): void {
  const [sensitive, extractable] = cryptoki.C_GetAttributeValue(session, key, [{ type: CKA.sensitive }, { type: CKA.extractable }]);
  if (sensitive?.value[0] === 1 && extractable?.value[0] === 0) return;
  throw new TokenFault('other', 'the token made a key that could leave it');
}

/** The first that the token takes, from the narrowest to the plainest. */
function firstTaken<T>(key: KeyName, refused: 'curve' | 'foreign', make: (curve: Buffer, privateHalf: readonly Attribute[]) => T): T {
  const plain = privateTemplate(key);
  let last: TokenFault | undefined;
  for (const privateHalf of [[...plain, ...NOTHING_ELSE], plain]) {
    for (const curve of MECHANISMS[key.algorithm].curve) {
      try {
        return make(curve, privateHalf);
      } catch (error) {
        last = asRefusal(error, refused);
        if (last.kind === 'session') throw last;
      }
    }
  }
  throw last ?? new TokenFault('other', 'no curve');
}

/** @throws the fault of `work`, which says what became of the objects. */
function orDestroyed<T>(cryptoki: Cryptoki, session: Handle, key: KeyName, made: readonly Handle[], work: () => T): T {
  try {
    return work();
  } catch (error) {
    const kept = made.filter((object) => {
      try {
        destroy(cryptoki, session, object);
        return false;
      } catch {
        return true;
      }
    });
    const { kind, message, code } = faultOf(error);
    throw new TokenFault(kind, `${message}; ${whatBecame(key, kept.length === 0)}`, code);
  }
}

/** For operators: a key that nobody uses may stand on the token until they remove it. */
export function whatBecame({ label }: KeyName, isGone: boolean): string {
  return isGone ? 'the key was destroyed' : `the key ${label} could not be destroyed: remove it from the token`;
}

function destroy(cryptoki: Cryptoki, session: Handle, object: Handle): void {
  try {
    cryptoki.C_DestroyObject(session, object);
  } catch (error) {
    if (faultOf(error).code !== CKR.objectHandleInvalid) throw error;
  }
}
