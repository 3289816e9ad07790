import type { RuleSettings } from './rules-schema.js';
import type { ConfigFile } from './schema.js';
import type { UpstreamKind } from './types.js';

/** Settings for the models of a vendor, which a config selects by name. */
export interface Preset {
  /** Kinds of upstreams that it is for, besides the simulator. */
  readonly kinds: readonly UpstreamKind[];
  /** The models, for the manual. */
  readonly models: string;
  readonly rules: RuleSettings;
  readonly translation: NonNullable<ConfigFile['models'][string]['targets'][number]['translation']>;
  /** Sources of the settings. */
  readonly sources: readonly string[];
}

const olderLimit = { max_completion_tokens: 'max_tokens' };
const systemAlone = { developer: 'system' };

/** Models before these and Codex models refuse the effort `none`, and all but GPT-5 itself refuse `minimal`. */
const openaiReasoning: Preset = {
  kinds: ['chat'],
  models: 'OpenAI models from GPT-5.1 on',
  rules: {
    efforts: { minimal: 'low' },
    drop: ['logprobs', 'top_logprobs', 'logit_bias'],
    rename: { max_tokens: 'max_completion_tokens' },
    sampling: false,
  },
  translation: { maxTokensField: 'max_completion_tokens', encryptedReasoning: true },
  sources: [
    'https://learn.microsoft.com/en-us/azure/foundry/openai/how-to/reasoning',
    'https://community.openai.com/t/developer-role-not-accepted-for-o1-o1-mini-o3-mini/1110750/7',
    'https://learn.microsoft.com/en-us/javascript/api/@azure/ai-projects/reasoningeffort',
  ],
};

/** Opus 4.7 and later refuse thinking budgets and sampling settings. Some of them also refuse `disabled` thinking. */
const claudeAdaptive: Preset = {
  kinds: ['messages'],
  models: 'Claude from Opus 4.7, Sonnet 5 and Haiku 5.5 on',
  rules: { efforts: { minimal: 'low', ultra: 'max' }, sampling: false, thinking: 'adaptive' },
  translation: { thinking: 'adaptive' },
  sources: [
    'https://platform.claude.com/docs/en/about-claude/models/migration-guide#migrating-to-claude-opus-4-7',
  ],
};

/** Sonnet 5 and the clouds of other vendors refuse messages of the system. */
const claudeMidSystem: Preset = {
  ...claudeAdaptive,
  models: "Claude Opus 4.8 and 5, Haiku 5.5, Fable 5 and Mythos 5, by Anthropic's own API",
  translation: { ...claudeAdaptive.translation, systemMessages: true },
  sources: [
    ...claudeAdaptive.sources,
    'https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages',
    'https://github.com/langchain-ai/langchainjs/releases/tag/@langchain%2Fanthropic@1.5.13',
    'https://github.com/pydantic/pydantic-ai/pull/6765',
  ],
};

/**
 * Presets by name. Those for messages upstreams of other vendors than Anthropic state that these neither search the web
 * nor keep threads. A rule that a vendor's page does not state is as an issue of a public repository reports it.
 */
export const presets: Readonly<Record<string, Preset>> = {
  'openai-reasoning': {
    ...openaiReasoning,
    models: 'OpenAI models that reason, before GPT-5.1 (o1, o3, o4, GPT-5), and its Codex models',
    rules: { ...openaiReasoning.rules, efforts: { none: 'low' } },
    sources: [...openaiReasoning.sources, 'https://github.com/numman-ali/opencode-openai-codex-auth/pull/62'],
  },
  'openai-5.1': openaiReasoning,
  'openai-5.6': {
    ...openaiReasoning,
    models: "OpenAI models from GPT-5.6 on, by OpenAI's own API",
    translation: { ...openaiReasoning.translation, cacheBreakpoints: true },
    sources: [...openaiReasoning.sources, 'https://developers.openai.com/api/docs/guides/prompt-caching'],
  },
  'claude-adaptive': claudeAdaptive,
  'claude-4.8': claudeMidSystem,
  // They refuse a choice that forces a call, and reasoning behind what has changed (the beta lets them drop it).
  'claude-5.5': {
    ...claudeMidSystem,
    models: "Claude Opus and Sonnet from 5.5, Fable and Mythos from 5.1 on, by Anthropic's own API",
    rules: { ...claudeMidSystem.rules, betas: { add: ['thinking-binding-controls-2026-08-01'] } },
    translation: { ...claudeMidSystem.translation, preservedThinking: true, forcedCalls: false },
    sources: [
      ...claudeMidSystem.sources,
      'https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5',
      'https://platform.claude.com/docs/en/models/sonnet-5-5/whats-new-sonnet-5-5',
      'https://platform.claude.com/docs/en/build-with-claude/preserved-thinking',
    ],
  },
  // These models refuse a call in the history without a signature, such as one of another model. It gets the vendor's
  // own filler.
  'gemini-3': {
    kinds: ['generateContent'],
    models: 'Gemini from 3 on',
    rules: {},
    translation: { thinking: 'levels' },
    sources: [
      'https://ai.google.dev/gemini-api/docs/thinking',
      'https://ai.google.dev/gemini-api/docs/thought-signatures',
    ],
  },
  deepseek: {
    kinds: ['chat', 'messages'],
    models: 'DeepSeek from V4 on, by its own API',
    rules: {
      rename: olderLimit,
      efforts: { minimal: 'low', medium: 'high', xhigh: 'high', ultra: 'max' },
      roles: systemAlone,
      thinking: 'type',
      fillReasoning: true,
    },
    translation: { maxTokensField: 'max_tokens', search: false, threads: false, unsignedThinking: true },
    sources: [
      'https://api-docs.deepseek.com/guides/thinking_mode',
      'https://github.com/theopenco/llmgateway/pull/3462',
      'https://github.com/Astro-Han/pawwork/pull/261',
      'https://github.com/QwenLM/qwen-code/pull/3788',
    ],
  },
  // K3 refuses the effort `none`. K2 models have `thinking` instead of efforts.
  kimi: {
    kinds: ['chat', 'messages'],
    models: 'Kimi K2.5 to K3.1, by the API of Moonshot',
    rules: {
      drop: ['n'],
      efforts: { none: 'low', minimal: 'low', medium: 'high', xhigh: 'max', ultra: 'max' },
      roles: systemAlone,
      sampling: false,
      fillReasoning: true,
    },
    translation: { search: false, threads: false, unsignedThinking: true },
    sources: [
      'https://platform.kimi.ai/docs/api/models-overview',
      'https://java.agentscope.io/v2/en/integration/model/kimi',
      'https://github.com/openclaw/openclaw/pull/22194',
      'https://github.com/anomalyco/opencode/issues/10996',
    ],
  },
  qwen: {
    kinds: ['chat'],
    models: 'Qwen, by the OpenAI-compatible API of Model Studio',
    rules: {
      rename: olderLimit,
      clamp: { temperature: { min: 0, max: 1.99 }, top_p: { min: 0.01, max: 1 } },
      roles: systemAlone,
      thinking: 'enable_thinking',
    },
    translation: { maxTokensField: 'max_tokens', topK: true },
    sources: [
      'https://docs.qwencloud.com/api-reference/chat/openai-chat',
      'https://www.alibabacloud.com/help/en/model-studio/deep-thinking',
    ],
  },
  glm: {
    kinds: ['chat'],
    models: 'GLM, by the API of Z.ai',
    rules: {
      rename: olderLimit,
      clamp: { temperature: { min: 0, max: 1 }, top_p: { min: 0.01, max: 1 } },
      efforts: { minimal: 'low', medium: 'high', xhigh: 'max', ultra: 'max' },
      roles: systemAlone,
      thinking: 'type',
    },
    translation: { maxTokensField: 'max_tokens' },
    sources: [
      'https://docs.z.ai/api-reference/llm/chat-completion',
      'https://docs.anyfast.ai/api-reference/model-api/zhipu/glm-5.2',
      'https://github.com/openclaw/openclaw/issues/23115',
    ],
  },
  vllm: {
    kinds: ['chat', 'messages'],
    models: 'models served by vLLM',
    rules: { efforts: { ultra: 'max' }, roles: systemAlone },
    translation: { topK: true, search: false, threads: false, unsignedThinking: true },
    sources: [
      'https://github.com/vllm-project/vllm/pull/43590',
      'https://docs.vllm.ai/en/stable/serving/openai_compatible_server/',
    ],
  },
  ollama: {
    kinds: ['chat'],
    models: 'models served by Ollama',
    rules: {
      rename: olderLimit,
      efforts: { minimal: 'low', xhigh: 'high', ultra: 'high' },
      roles: systemAlone,
    },
    translation: { maxTokensField: 'max_tokens' },
    sources: [
      'https://docs.ollama.com/api/openai-compatibility',
      'https://github.com/ollama/ollama/issues/7125',
      'https://github.com/ollama/ollama/issues/17072',
    ],
  },
};

/** Returns the preset with this name, or null. */
export function presetOf(name: string | null | undefined): Preset | null {
  return name != null && Object.hasOwn(presets, name) ? (presets[name] as Preset) : null;
}
