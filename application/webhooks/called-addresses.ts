import { Failure, type FieldError } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { parseInternalTrustListAddress } from '../../domain/trust-lists/internal-address.ts';
import type { ServiceSettings } from '../ports/settings.ts';

/** An address that the service calls, and its path in the document. */
export type CalledAddress = { readonly path: string; readonly url: string | undefined };

/**
 * Rejects addresses that can never be called when they are written, and not once a wallet waits. Names are not resolved.
 * @throws Failure `invalid_input` with every such address.
 */
export function assertCallable(
  remote: { refuses(url: string, tenantId: TenantId): boolean },
  tenantId: TenantId,
  addresses: readonly CalledAddress[],
): void {
  const errors: FieldError[] = addresses
    .filter(({ url }) => url !== undefined && remote.refuses(url, tenantId))
    .map(({ path }) => ({
      path,
      message:
        'is a blocked address; add it to OUTBOUND_ALLOW if it is not public https; metadata services of clouds require an exact entry',
    }));
  const [firstError] = errors;
  if (firstError === undefined) return;
  throw new Failure('invalid_input', { message: `${firstError.path} ${firstError.message}`, errors });
}

/** The address of a trust list; none for a list of this service, which is not called. */
export function listAddress(path: string, url: string, { publicUrl }: ServiceSettings): CalledAddress {
  return { path, url: parseInternalTrustListAddress(url, publicUrl) === undefined ? url : undefined };
}
