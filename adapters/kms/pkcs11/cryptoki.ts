/** Slot, session or object, as the library numbers them. */
export type Handle = Buffer;

export type Attribute = { readonly type: number; readonly value?: number | boolean | string | Buffer };

type Mechanism = { readonly mechanism: number };

/** Properties of a mechanism. Key sizes of elliptic curves are in bits. */
export type MechanismInfo = { readonly minKeySize: number; readonly maxKeySize: number; readonly flags: number };

/** Functions of PKCS#11 2.40 that are used, as the package `pkcs11js` offers them. They throw its errors. */
export type Cryptoki = {
  load(library: string): void;
  C_Initialize(options: { readonly flags: number }): void;
  C_Finalize(): void;
  C_GetSlotList(withToken: boolean): Handle[];
  C_GetTokenInfo(slot: Handle): { readonly label: string; readonly flags: number };
  C_GetMechanismList(slot: Handle): number[];
  C_GetMechanismInfo(slot: Handle, mechanism: number): MechanismInfo;
  C_OpenSession(slot: Handle, flags: number): Handle;
  C_CloseSession(session: Handle): void;
  C_GetSessionInfo(session: Handle): { readonly state: number };
  C_Login(session: Handle, userType: number, pin: string): void;
  C_GenerateKeyPair(
    session: Handle,
    mechanism: Mechanism,
    publicKey: readonly Attribute[],
    privateKey: readonly Attribute[],
  ): { readonly publicKey: Handle; readonly privateKey: Handle };
  C_CreateObject(session: Handle, template: readonly Attribute[]): Handle;
  C_DestroyObject(session: Handle, object: Handle): void;
  C_FindObjectsInit(session: Handle, template: readonly Attribute[]): void;
  C_FindObjects(session: Handle, most: number): Handle[];
  C_FindObjectsFinal(session: Handle): void;
  C_GetAttributeValue(session: Handle, object: Handle, template: readonly Attribute[]): readonly { readonly value: Buffer }[];
  C_SignInit(session: Handle, mechanism: Mechanism, key: Handle): void;
  /** @returns the part of `buffer` that contains the signature. */
  C_Sign(session: Handle, data: Buffer, buffer: Buffer): Buffer;
};

/** Constants of PKCS#11 (pkcs11t.h of version 3.0) that are used. */
export const CKA = {
  class: 0x000,
  token: 0x001,
  private: 0x002,
  label: 0x003,
  value: 0x011,
  keyType: 0x100,
  id: 0x102,
  sensitive: 0x103,
  decrypt: 0x105,
  unwrap: 0x107,
  sign: 0x108,
  signRecover: 0x109,
  verify: 0x10a,
  derive: 0x10c,
  extractable: 0x162,
  ecParameters: 0x180,
  ecPoint: 0x181,
} as const;
export const CKO = { privateKey: 3 } as const;
export const CKK = { ec: 0x03, ecEdwards: 0x40 } as const;
export const CKM = { ecKeyPairGen: 0x1040, ecdsa: 0x1041, ecEdwardsKeyPairGen: 0x1055, eddsa: 0x1057 } as const;
export const CKF = {
  /** `C_Initialize`: the library uses locks of the operating system, because calls come from several threads. */
  osLocking: 0x2,
  /** Flags of sessions. */
  readWrite: 0x2,
  serial: 0x4,
  tokenInitialized: 0x400,
  /** Flags of mechanisms. */
  sign: 0x800,
  generateKeyPair: 0x1_0000,
} as const;
export const CKU_USER = 1;
/** Session state in which the user is logged in and keys can be created. */
export const CKS_RW_USER = 3;

/** Typed as string, so that the compiler does not resolve an optional package. */
const PACKAGE: string = 'pkcs11js';

/**
 * Loads the package and the library; neither accesses a token yet.
 * @throws Error that tells the operator what to install or to correct.
 */
export async function loadCryptoki(library: string): Promise<Cryptoki> {
  const cryptoki = await createCryptoki();
  try {
    cryptoki.load(library);
  } catch (error) {
    throw new Error(
      `the PKCS#11 library ${library} cannot be loaded (${messageOf(error)}); set the library of the vendor for this machine`,
    );
  }
  return cryptoki;
}

async function createCryptoki(): Promise<Cryptoki> {
  try {
    const { default: pkcs11js } = (await import(PACKAGE)) as { default: { PKCS11: new () => Cryptoki } };
    return new pkcs11js.PKCS11();
  } catch (error) {
    throw new Error(
      'an HSM requires the package pkcs11js, which is not installed or not compiled: run "npm i --no-save pkcs11js" ' +
        'and "npm rebuild --ignore-scripts=false pkcs11js"; it requires a C++ compiler, make, Python and the headers of ' +
        `Node (${messageOf(error)})`,
    );
  }
}

/** First line of a message; further lines name files. */
function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
}
