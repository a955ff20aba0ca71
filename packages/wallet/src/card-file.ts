import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { HolderKey, PublicJwk, StoredCredential } from './core/index.ts';
import { UsageError } from './options.ts';

type SerializedCredential = Omit<StoredCredential, 'holder'> & { readonly holder: PublicJwk & { readonly d: string } };

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const VERSION = 1;

/** @throws UsageError for an invalid file. */
export async function readCards(file: string): Promise<readonly StoredCredential[]> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new UsageError(`${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    const { version, cards } = JSON.parse(text) as { version: number; cards: SerializedCredential[] };
    if (version !== VERSION) throw new Error('another version');
    return await Promise.all(cards.map(async (card) => ({ ...card, holder: await keyOf(card.holder) })));
  } catch {
    throw new UsageError(`${file} contains no credentials of this wallet`);
  }
}

/** Writes atomically and readable for the owner only, because the file contains private keys. */
export async function writeCards(file: string, cards: readonly StoredCredential[]): Promise<void> {
  const serialized = await Promise.all(
    cards.map(async (card): Promise<SerializedCredential> => {
      const { d = '' } = await crypto.subtle.exportKey('jwk', card.holder.privateKey);
      return { ...card, holder: { ...card.holder.publicJwk, d } };
    }),
  );
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const temporaryFile = `${file}.${process.pid}`;
  writeFileSync(temporaryFile, JSON.stringify({ version: VERSION, cards: serialized }, null, 2), { mode: 0o600 });
  chmodSync(temporaryFile, 0o600);
  renameSync(temporaryFile, file);
}

async function keyOf({ d, ...publicJwk }: SerializedCredential['holder']): Promise<HolderKey> {
  const privateKey = await crypto.subtle.importKey('jwk', { ...publicJwk, d }, ALGORITHM, true, ['sign']);
  return { privateKey, publicJwk };
}
