import { argon2Sync, randomBytes } from 'node:crypto';
import type { Secrets } from '../../application/ports/secrets.ts';

/**
 * Makes the hashes of new secrets cheap. A hash contains its cost, so every process can verify it; the contract of the port
 * tests the real cost.
 */
export function useCheapSecretHashes(secrets: Secrets): void {
  secrets.hash = async (secret) => {
    const salt = randomBytes(16);
    const cost = { memory: 8, passes: 1, parallelism: 1 };
    const tag = argon2Sync('argon2id', { message: secret, nonce: salt, tagLength: 32, ...cost });
    return `argon2id$m=8,t=1,p=1$${salt.toString('base64url')}$${tag.toString('base64url')}`;
  };
}
