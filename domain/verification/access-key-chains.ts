import type { PresentationConfigurationBody } from './configuration.ts';

type Naming = Partial<Pick<PresentationConfigurationBody, 'accessKeyChainId' | 'furtherAccessKeyChainIds'>>;

/** Key chains that a presentation configuration names to sign its requests; the default of the tenant is not among them. */
export function accessKeyChainsOf({ accessKeyChainId, furtherAccessKeyChainIds }: Naming): readonly string[] {
  const own = typeof accessKeyChainId === 'string' ? [accessKeyChainId] : [];
  return [...own, ...(furtherAccessKeyChainIds ?? [])];
}
