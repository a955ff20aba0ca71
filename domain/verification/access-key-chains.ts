import type { PresentationConfigurationBody } from './configuration.ts';

type AccessKeyChainSettings = Partial<Pick<PresentationConfigurationBody, 'accessKeyChainId' | 'furtherAccessKeyChainIds'>>;

/** Key chains that a presentation configuration names for signing its requests, without the tenant's default. */
export function accessKeyChainsOf({ accessKeyChainId, furtherAccessKeyChainIds }: AccessKeyChainSettings): readonly string[] {
  const mainChain = typeof accessKeyChainId === 'string' ? [accessKeyChainId] : [];
  return [...mainChain, ...(furtherAccessKeyChainIds ?? [])];
}
