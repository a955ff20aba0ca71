import { type KeyChain, type KeyUsage, pickKeyChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';

/**
 * A configuration may only name a key chain that could sign now.
 * @throws Failure `invalid_input` at `path`, whatever is wrong with the reference.
 */
export function requireKeyChain(
  chains: readonly KeyChain[],
  usage: KeyUsage,
  id: string | null | undefined,
  path: string,
  now: Date,
): void {
  if (id === null || id === undefined) return;
  try {
    pickKeyChain(chains, usage, now, id);
  } catch (error) {
    throw invalidInput(path, error instanceof Failure ? error.message : 'this key chain cannot be used');
  }
}
