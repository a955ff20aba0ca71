/**
 * Fault of a token, by its remedy:
 * - `session`: the session, the login or the device is gone, and may be back when it is opened again;
 * - `token`: the token is missing; - `pin`: the PIN was rejected and must not be tried again;
 * - `key`: concerns a single key; - `curve`: the token lacks the curve; - `foreign`: it accepts no external keys;
 * - `other`: everything else.
 */
export type FaultKind = 'session' | 'token' | 'pin' | 'key' | 'curve' | 'foreign' | 'other';

/** A failed operation on a token. The message is for operators: it names the function and the code of PKCS#11. */
export class TokenFault extends Error {
  readonly kind: FaultKind;
  /** PKCS#11 code (`CKR_…`), if the library gave one. */
  readonly code: number | undefined;

  constructor(kind: FaultKind, message: string, code?: number) {
    super(message);
    this.kind = kind;
    this.code = code;
  }
}

/** Codes that are distinguished (pkcs11t.h of version 3.0). */
export const CKR = {
  slotIdInvalid: 0x003,
  attributeReadOnly: 0x010,
  attributeTypeInvalid: 0x012,
  attributeValueInvalid: 0x013,
  actionProhibited: 0x01b,
  deviceError: 0x030,
  deviceRemoved: 0x032,
  functionNotSupported: 0x054,
  keyHandleInvalid: 0x060,
  keySizeRange: 0x062,
  keyTypeInconsistent: 0x063,
  keyFunctionNotPermitted: 0x068,
  mechanismInvalid: 0x070,
  objectHandleInvalid: 0x082,
  pinIncorrect: 0x0a0,
  pinInvalid: 0x0a1,
  pinLengthRange: 0x0a2,
  pinExpired: 0x0a3,
  pinLocked: 0x0a4,
  sessionClosed: 0x0b0,
  sessionHandleInvalid: 0x0b3,
  templateIncomplete: 0x0d0,
  templateInconsistent: 0x0d1,
  tokenNotPresent: 0x0e0,
  tokenNotRecognized: 0x0e1,
  userAlreadyLoggedIn: 0x100,
  userNotLoggedIn: 0x101,
  domainParametersInvalid: 0x130,
  curveNotSupported: 0x140,
  notInitialized: 0x190,
  alreadyInitialized: 0x191,
  functionRejected: 0x200,
} as const;

const KINDS = new Map<number, FaultKind>([
  ...kind('session', [
    CKR.slotIdInvalid,
    CKR.deviceError,
    CKR.deviceRemoved,
    CKR.sessionClosed,
    CKR.sessionHandleInvalid,
    CKR.tokenNotPresent,
    CKR.tokenNotRecognized,
    CKR.userNotLoggedIn,
    CKR.notInitialized,
  ]),
  ...kind('pin', [CKR.pinIncorrect, CKR.pinInvalid, CKR.pinLengthRange, CKR.pinExpired, CKR.pinLocked]),
  ...kind('key', [
    CKR.keyHandleInvalid,
    CKR.keySizeRange,
    CKR.keyTypeInconsistent,
    CKR.keyFunctionNotPermitted,
    CKR.objectHandleInvalid,
    CKR.mechanismInvalid,
  ]),
]);

/** Codes of tokens that do not accept such a key. */
const REFUSALS: readonly number[] = [
  CKR.attributeReadOnly,
  CKR.attributeTypeInvalid,
  CKR.attributeValueInvalid,
  CKR.actionProhibited,
  CKR.functionNotSupported,
  CKR.templateIncomplete,
  CKR.templateInconsistent,
  CKR.domainParametersInvalid,
  CKR.curveNotSupported,
  CKR.functionRejected,
  CKR.keySizeRange,
  CKR.mechanismInvalid,
];

function kind(name: FaultKind, codes: readonly number[]): [number, FaultKind][] {
  return codes.map((code) => [code, name]);
}

/** Maps an error of `pkcs11js`. Its text is `CKR_NAME`, or `CKR_NAME:number` for some errors. */
export function faultOf(error: unknown): TokenFault {
  if (error instanceof TokenFault) return error;
  if (!(error instanceof Error)) return new TokenFault('other', 'the library failed');
  const [, name, number] = /^(CKR_\w+)(?::(\d+))?/.exec(error.message) ?? [];
  const stated = (error as { code?: unknown }).code;
  const code = number !== undefined ? Number(number) : typeof stated === 'number' ? stated : undefined;
  if (name === undefined || code === undefined) return new TokenFault('other', error.message);
  const method = (error as { method?: unknown }).method;
  const where = typeof method === 'string' && method !== '' ? `${method}: ` : '';
  // Vendor codes have numbers but no names here.
  const text = name === 'CKR_VENDOR_DEFINED' ? `${name} 0x${code.toString(16)}` : name;
  return new TokenFault(KINDS.get(code) ?? 'other', `${where}${text}`, code);
}

/** Returns a fault of the given kind if the token rejected the attributes of a key; other faults stay unchanged. */
export function asRejection(error: unknown, kind: 'curve' | 'foreign'): TokenFault {
  const fault = faultOf(error);
  if (fault.code === undefined || !REFUSALS.includes(fault.code)) return fault;
  return new TokenFault(kind, fault.message, fault.code);
}
