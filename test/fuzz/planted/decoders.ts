/** Decoders with a fault that no seed comes near. */

export class PlantedRefusal extends Error {}

/** Throws an undeclared error after two comparisons. */
export function throwsUndeclared(bytes: Buffer): number {
  if (bytes.length < 4) throw new PlantedRefusal('short');
  if (bytes[1] === 0xc3) {
    if (bytes[3] === 0x28) {
      throw new TypeError('planted');
    }
    return 1;
  }
  return 0;
}

/** Never ends, behind two comparisons within base64url within JSON. */
export function hangs(bytes: Buffer): number {
  const { token } = readPlanted(bytes);
  const inner = Buffer.from(token, 'base64url');
  if (inner[0] === 0x7b) {
    if (inner.includes('!')) {
      for (let left = 1; left > 0; left = 1);
    }
    return 1;
  }
  return 0;
}

/** Takes what it must not take. */
export function takesTooMuch(bytes: Buffer): { readonly admin: boolean } {
  const { token } = readPlanted(bytes);
  if (token.startsWith('root')) {
    if (token.length > 8) {
      return { admin: true };
    }
  }
  return { admin: false };
}

/** Satisfies all invariants. */
export function readPlanted(bytes: Buffer): { readonly token: string } {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString());
  } catch {
    throw new PlantedRefusal('no JSON');
  }
  const token = typeof value === 'object' && value !== null && 'token' in value ? value.token : undefined;
  if (typeof token !== 'string') throw new PlantedRefusal('no token');
  return { token };
}
