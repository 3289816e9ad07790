import { OpenAI as OpenAI4 } from 'openai4';
import { OpenAI as OpenAI6 } from 'openai6';

/** What of the SDK's three versions is used, where they agree. */
type Sdk = OpenAI6;

interface SdkClass {
  new (options: { apiKey: string; baseURL: string; maxRetries: number }): unknown;
}

async function sdk7(): Promise<SdkClass | string> {
  try {
    return (await import('openai7')).OpenAI;
  } catch (error) {
    return `openai 7 does not load on Node ${process.version}: ${String(error)}`;
  }
}

/** A version of the SDK: how to make a client, or why it cannot be had here. */
interface SdkVersion {
  readonly name: string;
  readonly options: { readonly skip?: string };
  client(baseURL: string): Sdk;
}

/** The versions of the OpenAI SDK that clients use. */
export const openaiSdks: readonly SdkVersion[] = (
  [
    ['openai 4', OpenAI4 as SdkClass],
    ['openai 6', OpenAI6 as SdkClass],
    ['openai 7', await sdk7()],
  ] as const
).map(([name, found]) => ({
  name,
  options: typeof found === 'string' ? { skip: found } : {},
  client(baseURL) {
    if (typeof found === 'string') throw new Error(found);
    return new found({ apiKey: 'sk-any', baseURL, maxRetries: 0 }) as Sdk;
  },
}));
