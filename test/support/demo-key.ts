/** Output of `model-gateway key hash sk-demo`, without loading the gateway here. */
export const demoKeyHash = 'sha256:f77894fdfa58e447c57e077eaa9708e8e009c84dc6aba2db80461275e9b85be7';
