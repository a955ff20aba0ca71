import { Failure, type FieldError } from '../../domain/shared/failure.ts';
import type { Webhooks } from '../ports/webhooks.ts';

/** An address that the service is to call, and where it stands in the document. */
export type CalledAddress = { readonly path: string; readonly url: string | undefined };

/**
 * What can never be called is refused where it is written, and not once a wallet waits. Names are not looked up.
 * @throws Failure `invalid_input` with every such address.
 */
export function assertCallable(
  webhooks: Pick<Webhooks, 'refuses'>,
  addresses: readonly CalledAddress[],
): void {
  const errors: FieldError[] = addresses
    .filter(({ url }) => url !== undefined && webhooks.refuses(url))
    .map(({ path }) => ({
      path,
      message:
        'is not an address that may be called; OUTBOUND_ALLOW names those that may be beside public https',
    }));
  const [first] = errors;
  if (first === undefined) return;
  throw new Failure('invalid_input', { message: `${first.path} ${first.message}`, errors });
}
