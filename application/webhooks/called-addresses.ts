import { Failure, type FieldError } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { ownTrustListOf } from '../../domain/trust-lists/own-address.ts';
import type { ServiceSettings } from '../ports/settings.ts';

/** An address that the service is to call, and where it stands in the document. */
export type CalledAddress = { readonly path: string; readonly url: string | undefined };

/**
 * What can never be called is refused where it is written, and not once a wallet waits. Names are not looked up.
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
        'is not an address that may be called; OUTBOUND_ALLOW names those that may be beside public https; metadata services of clouds need an entry for just them',
    }));
  const [first] = errors;
  if (first === undefined) return;
  throw new Failure('invalid_input', { message: `${first.path} ${first.message}`, errors });
}

/** A trust list, which is called unless this service publishes it itself. */
export function listAddress(path: string, url: string, { publicUrl }: ServiceSettings): CalledAddress {
  return { path, url: ownTrustListOf(url, publicUrl) === undefined ? url : undefined };
}
